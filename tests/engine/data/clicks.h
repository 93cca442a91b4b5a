// Rows of click data for tests.
#pragma once

#include <string>
#include <vector>

#include "data/source.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data::testing {

struct Click {
  float label = -1;
  std::vector<float> dense;
  std::vector<int64_t> ids;
  std::vector<float> weights;
  bool operator==(const Click&) const = default;
};

// The columns of one sample.
inline Click click_of(const Source& source, int64_t index) {
  Click click;
  std::vector<void*> to;
  float label = -1;
  for (const Column& column : source.columns()) {
    const auto count = static_cast<size_t>(column.shape.elements());
    if (column.name == "label") to.push_back(&label);
    if (column.name == "dense") to.push_back((click.dense.resize(count), click.dense.data()));
    if (column.name == "ids") to.push_back((click.ids.resize(count), click.ids.data()));
    if (column.name == "weights") to.push_back((click.weights.resize(count), click.weights.data()));
  }
  source.fill(index, 0, to);
  click.label = label;
  return click;
}

inline std::unique_ptr<Source> open_data(const std::string& source, const std::string& json,
                                         bool train = true) {
  return open_split(settings_of(source, json), train, false, {.seed = 1});
}

// JSON with the files of the training.
inline std::string with_files(const std::string& files, const std::string& more = "") {
  return R"({"train": {"file": [")" + files + R"("]})" + (more.empty() ? "" : ", " + more) + "}";
}

}  // namespace fleet::data::testing
