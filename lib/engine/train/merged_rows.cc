#include "train/merged_rows.h"

#include <cstring>
#include <string>
#include <utility>

namespace fleet {
namespace {

constexpr char kIds[] = ".merged_ids", kShows[] = ".merged_shows", kClicks[] = ".merged_clicks",
               kGradients[] = ".merged_gradients";

template <typename T>
HostTensor host_tensor(const std::vector<T>& values, DType dtype, const Shape& shape) {
  TensorBytes data(values.size() * sizeof(T));
  std::memcpy(data.data(), values.data(), data.size());
  return {.dtype = dtype, .shape = shape, .data = data};
}

template <typename T>
std::vector<T> copied_values(const HostTensor& tensor) {
  const TensorBytes bytes = tensor.values();
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

void add_merged_rows(const std::vector<MergedRows>& rows, TensorFile* part) {
  for (const MergedRows& table : rows) {
    if (table.ids.empty()) continue;
    const auto count = static_cast<int64_t>(table.ids.size());
    const auto dim = static_cast<int64_t>(table.gradients.size()) / count;
    part->tensors[table.table + kIds] = host_tensor(table.ids, DType::kInt64, {count});
    part->tensors[table.table + kShows] = host_tensor(table.shows, DType::kFloat32, {count});
    part->tensors[table.table + kClicks] = host_tensor(table.clicks, DType::kFloat32, {count});
    part->tensors[table.table + kGradients] =
        host_tensor(table.gradients, DType::kFloat32, {count, dim});
  }
}

std::vector<MergedRows> take_merged_rows(TensorFile* part, const std::string& path) {
  std::vector<MergedRows> all;
  for (const auto& [name, tensor] : part->tensors) {
    if (!name.ends_with(kIds)) continue;
    all.push_back({.table = name.substr(0, name.size() - std::strlen(kIds)),
                   .ids = copied_values<uint64_t>(tensor)});
  }
  const auto take = [&](const MergedRows& rows, const char* what) {
    const auto node = part->tensors.extract(rows.table + what);
    if (!node || node.mapped().dtype != DType::kFloat32) {
      throw DamagedFile("the gradients of the table '" + rows.table + "' are not complete", path,
                        "use an older checkpoint");
    }
    return copied_values<float>(node.mapped());
  };
  for (MergedRows& rows : all) {
    part->tensors.erase(rows.table + kIds);
    rows.shows = take(rows, kShows);
    rows.clicks = take(rows, kClicks);
    rows.gradients = take(rows, kGradients);
    const size_t count = rows.ids.size();
    if (count == 0 || rows.shows.size() != count || rows.clicks.size() != count ||
        rows.gradients.size() % count != 0) {
      throw DamagedFile("the gradients of the table '" + rows.table + "' differ in number", path,
                        "use an older checkpoint");
    }
  }
  return all;
}

}  // namespace fleet
