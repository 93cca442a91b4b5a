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
  // The first dimension is the length of a row of tokens, the same in all such columns: a batch of
  // short samples may have shorter rows (data.lengths).
  bool by_length = false;
};

// Null if no column has this name.
inline const Column* find_column(const std::vector<Column>& columns, std::string_view name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

// The length of a row; 0 if no column has one.
inline int64_t row_length(const std::vector<Column>& columns) {
  const auto found = std::ranges::find(columns, true, &Column::by_length);
  return found == columns.end() ? 0 : found->shape[0];
}

// The columns of rows of another length.
inline std::vector<Column> at_length(std::vector<Column> columns, int64_t length) {
  for (Column& column : columns) {
    if (column.by_length) column.shape[0] = length;
  }
  return columns;
}

}  // namespace fleet
