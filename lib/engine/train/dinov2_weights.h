// The files of the authors of DINOv2 (Meta): dinov2_vits14_reg4_pretrain.pth and their like.
#pragma once

#include "train/safetensors.h"

namespace fleet {

// Gives the tensors of such a file the names and shapes of timm, by the rules of timm: numbers of
// chunks of blocks and mask_token go, and in a file with registers the class token takes the
// first position, and the patches have the others. Returns whether it is such a file: it has a
// mask_token; other files stay as they are.
bool fit_dinov2_file(TensorFile* file);

}  // namespace fleet
