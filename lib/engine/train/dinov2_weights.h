// The files of the authors of DINOv2 (Meta): dinov2_vits14_reg4_pretrain.pth and their like.
#pragma once

#include "train/safetensors.h"

namespace fleet {

// Gives the tensors of such a file the names and shapes of timm, by the rules of timm: mask_token
// is removed, and so are the numbers of chunks in the names of blocks. If the file has registers,
// the first position is added to the class token, and the other positions belong to the patches.
// Returns whether it is such a file, which has a mask_token; other files are not changed.
bool fit_dinov2_file(TensorFile* file);

}  // namespace fleet
