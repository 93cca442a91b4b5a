#include "train/tensor_values.h"

#include <cstring>

#include "train/initial_weights.h"

namespace fleet {

std::vector<float> floats_of(const HostTensor& tensor) {
  HostTensor whole{tensor.dtype, tensor.shape, tensor.values()};
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  if (whole.data.size() < values.size() * size_of(tensor.dtype)) return values;
  whole = converted(whole, DType::kFloat32);
  std::memcpy(values.data(), whole.data.data(), values.size() * sizeof(float));
  return values;
}

HostTensor tensor_of(const Shape& shape, const std::vector<float>& values) {
  HostTensor tensor{DType::kFloat32, shape, TensorBytes(values.size() * sizeof(float))};
  std::memcpy(tensor.data.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

}  // namespace fleet
