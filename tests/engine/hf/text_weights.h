// Weights of golden cases of texts, as transformers saves them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/engine/models/text/golden_text.h"
#include "train/safetensors.h"

namespace fleet {

inline HostTensor host_tensor(const std::string& name, const Shape& shape) {
  const std::vector<float> values = golden::tensor(name, shape);
  HostTensor tensor{DType::kFloat32, shape, TensorBytes(values.size() * sizeof(float))};
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

// The weights of a case as transformers saves them.
inline TensorFile weights_of(const golden::TextCase& text) {
  const std::string prefix = "gradient.";
  TensorFile file;
  for (const auto& [name, shape] : text.shapes) {
    if (!name.starts_with(prefix)) continue;
    const std::string own = name.substr(prefix.size());
    file.tensors[own] = host_tensor(own, shape);
  }
  return file;
}

inline std::string bytes_of_tensor(const HostTensor& tensor) {
  const TensorBytes values = tensor.values();
  return {values.data(), values.size()};
}

inline void expect_same(const TensorFile& ours, const TensorFile& theirs) {
  ASSERT_EQ(ours.tensors.size(), theirs.tensors.size());
  for (const auto& [name, tensor] : theirs.tensors) {
    ASSERT_TRUE(ours.tensors.contains(name)) << name;
    EXPECT_EQ(ours.tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(bytes_of_tensor(ours.tensors.at(name)), bytes_of_tensor(tensor)) << name;
  }
}

}  // namespace fleet
