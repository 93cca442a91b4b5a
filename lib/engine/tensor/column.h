// Columns of data: what a source gives for each sample, a batch holds and a model is fed with.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet {

struct Column {
  std::string name;  // "image", "label", "input_ids": also the name of the feed
  DType dtype = DType::kFloat32;
  Shape shape = {};     // one sample's, without the batch; {}: one number
  bool ragged = false;  // samples differ in size (encoded images); batches never hold such a column
};

// Null if no column has this name.
inline const Column* find_column(const std::vector<Column>& columns, std::string_view name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

}  // namespace fleet
