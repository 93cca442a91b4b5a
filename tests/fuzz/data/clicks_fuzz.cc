// Files of click data: the first byte chooses the source, the others are its file.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/pipeline.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

namespace fleet::data {
namespace {

constexpr int64_t kIds = 1000;

void read_all(const Source& source) {
  std::vector<std::vector<std::byte>> columns;
  std::vector<void*> to;
  size_t ids = 0;
  for (const Column& column : source.columns()) {
    if (column.name == "ids") ids = columns.size();
    columns.emplace_back(static_cast<size_t>(column.shape.elements()) * size_of(column.dtype));
    to.push_back(columns.back().data());
  }
  for (int64_t row = 0; row < source.size(); ++row) {
    source.fill(row, 0, to);
    const auto* values = reinterpret_cast<const int64_t*>(columns[ids].data());
    const auto count = static_cast<ptrdiff_t>(columns[ids].size() / sizeof(int64_t));
    fuzz::require(
        std::all_of(values, values + count, [](int64_t id) { return id >= -1 && id < kIds; }),
        "ids are in their space");
    fuzz::require(!source.name(row).empty(), "rows have names");
  }
}

FLEET_FUZZ(clicks) {
  static const std::array<std::string, 4> kSources = {"criteo", "slot_text", "multislot", "libsvm"};
  if (bytes.empty() || bytes.substr(1).starts_with("\x1f\x8b")) return;  // no cache in a target
  const std::string& source = kSources[static_cast<unsigned char>(bytes[0]) % kSources.size()];
  const fuzz::MemoryFile file(bytes.substr(1));
  const ConfigTree tree = ConfigTree::from_json(
      R"({"ids": )" + std::to_string(kIds) + R"(, "max_broken_lines": 1, "train": {"file": [")" +
          file.path() + R"("]}})",
      "fuzz");
  const Settings data = tree.validate(data_schema(source));
  const auto opened = open_split(data, true, false, {.seed = 1});
  read_all(*opened);
}

}  // namespace
}  // namespace fleet::data
