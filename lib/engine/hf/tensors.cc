#include <cstring>
#include <set>

#include "base/error.h"
#include "hf/export.h"
#include "train/initial_weights.h"

namespace fleet {
namespace {

[[noreturn]] void refuse_tensor(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::kUsage, what, path, "use a checkpoint of the job's model");
}

// Rows [begin, begin + rows) of a tensor; as columns of [in, out] if transposed.
HostTensor part_of(const HostTensor& whole, const WeightPart& part, int64_t begin) {
  const int64_t all = whole.shape[0], columns = whole.shape.elements() / all;
  const size_t width = size_of(whole.dtype), row = static_cast<size_t>(columns) * width;
  Shape shape = whole.shape;
  shape[0] = part.rows;
  if (part.transposed) shape = Shape{columns, part.rows};
  const auto load = [=, rows = part.rows, transposed = part.transposed] {
    const TensorBytes from = whole.values(), to(row * static_cast<size_t>(rows));
    const char* start = from.data() + static_cast<size_t>(begin) * row;
    if (!transposed) {
      std::memcpy(to.data(), start, to.size());
      return to;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(to.data() + static_cast<size_t>(c * rows + r) * width,
                    start + static_cast<size_t>(r) * row + static_cast<size_t>(c) * width, width);
      }
    }
    return to;
  };
  return {.dtype = whole.dtype, .shape = shape, .data = {}, .load = load};
}

}  // namespace

TensorFile hugging_face_tensors(const LanguageModel& model, const TensorFile& file,
                                const std::string& path, const std::set<std::string>& outputs) {
  TensorFile result;
  result.metadata["format"] = "pt";
  std::set<std::string> used;
  const std::vector<WeightPart> parts = weight_parts(model, outputs);
  for (size_t begin = 0, end; begin < parts.size(); begin = end) {
    const std::string& name = parts[begin].parameter;
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) refuse_tensor(path, "has no '" + name + "'");
    int64_t rows = 0;
    for (end = begin; end < parts.size() && parts[end].parameter == name; ++end) {
      rows += parts[end].rows;
    }
    const HostTensor& whole = found->second;
    if (whole.shape.rank() < 1 || whole.shape[0] != rows || whole.layout) {
      refuse_tensor(path, "'" + name + "' is " + whole.shape.text() + ", the model's has " +
                              std::to_string(rows) + " rows");
    }
    int64_t at = 0;
    for (size_t i = begin; i < end; at += parts[i++].rows) {
      const HostTensor part = part_of(whole, parts[i], at);
      result.tensors.emplace(parts[i].name, part);
      if (!parts[i].under_aliases) continue;
      for (const std::string& alias : parts[i].aliases) result.tensors.emplace(alias, part);
    }
    used.insert(name);
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (!used.contains(name)) refuse_tensor(path, "has '" + name + "', which the model lacks");
  }
  return result;
}

}  // namespace fleet
