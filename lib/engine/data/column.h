// Columns: what a sample consists of, if its source gives finished values instead of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/config.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet::data {

// One named value of every sample.
struct Column {
  std::string name;  // "input_ids"
  DType dtype = DType::kFloat32;
  Shape shape;               // of one sample, without the batch; {}: a number
  bool loss_weight = false;  // weights in the loss: 0 for a sample that pads a batch
  size_t sample_bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }
  bool operator==(const Column&) const = default;
};

// The values of one column in a batch: [size, shape of a sample], in plain layout.
struct BatchColumn {
  Column column;
  std::span<std::byte> data;
};

// kUsage naming a key of data.* that is about images, if the job's source gives columns.
void check_column_keys(const Settings& data);

}  // namespace fleet::data
