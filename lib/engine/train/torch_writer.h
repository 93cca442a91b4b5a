// Writes tensors as torch.save() does: a zip with a pickle of a dict and the tensors' bytes.
#pragma once

#include <string>

#include "train/safetensors.h"

namespace fleet {

// torch.load(path, weights_only=True) gives the dict. The file is written aside and renamed; the
// metadata are left out. kUnsupported for 4 GiB or more, kIo.
void write_torch_file(const std::string& path, const TensorFile& file);

}  // namespace fleet
