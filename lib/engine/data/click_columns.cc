#include "data/click_columns.h"

namespace fleet::data {

std::vector<Column> click_columns(const ClickShape& shape, bool labelled) {
  std::vector<Column> columns;
  const Shape ids = {shape.slots, shape.longest};
  if (labelled) columns.push_back({.name = "label", .dtype = DType::kFloat32, .shape = {1}});
  if (shape.dense > 0) {
    columns.push_back({.name = "dense", .dtype = DType::kFloat32, .shape = {shape.dense}});
  }
  if (shape.slots > 0) columns.push_back({.name = "ids", .dtype = DType::kInt64, .shape = ids});
  if (shape.weights) {
    columns.push_back({.name = "weights", .dtype = DType::kFloat32, .shape = ids});
  }
  return columns;
}

ClickRow click_row(const ClickShape& shape, bool labelled, std::span<void* const> to) {
  ClickRow row;
  size_t next = 0;
  if (labelled) row.label = static_cast<float*>(to[next++]);
  if (shape.dense > 0) row.dense = static_cast<float*>(to[next++]);
  if (shape.slots > 0) row.ids = static_cast<int64_t*>(to[next++]);
  if (shape.weights) row.weights = static_cast<float*>(to[next++]);
  return row;
}

Schema id_space_keys() {
  return Schema().integer("ids", 1'000'001, 0, 9e15,
                          "Number of ids, which all slots share; a hash modulo this number is the "
                          "id of a value. 0: all 63 bits of the hash, for tables on parameter "
                          "servers");
}

}  // namespace fleet::data
