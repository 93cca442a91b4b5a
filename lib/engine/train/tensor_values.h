// The values of floating-point tensors of a file, as float32.
#pragma once

#include <vector>

#include "train/safetensors.h"

namespace fleet {

// Zeros if the file was read without values.
std::vector<float> floats_of(const HostTensor& tensor);

HostTensor tensor_of(const Shape& shape, const std::vector<float>& values);

}  // namespace fleet
