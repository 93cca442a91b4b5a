#include "data/lengths.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace fleet::data {
namespace {

constexpr size_t kMostLengths = 16;  // each has a Plan

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "data.lengths", next);
}

}  // namespace

std::vector<int64_t> batch_lengths(const Settings& data, const std::vector<Column>& columns) {
  std::vector<int64_t> lengths = data.integers("lengths");
  if (lengths.empty()) return {};
  const int64_t longest = row_length(columns);
  if (longest == 0 || find_column(columns, "image")) {
    refuse("the source '" + data.text("source") + "' has no rows of tokens", "remove the key");
  }
  if (lengths.size() > kMostLengths) {
    refuse("has " + std::to_string(lengths.size()) + " lengths, each of which needs a plan",
           "use at most " + std::to_string(kMostLengths));
  }
  if (lengths[0] < 1 ||
      std::ranges::adjacent_find(lengths, std::greater_equal()) != lengths.end()) {
    refuse("the lengths are not ascending from 1 on", "sort them, and name each once");
  }
  if (lengths.back() != longest) {
    refuse("the last length is " + std::to_string(lengths.back()) + ", and the longest rows have " +
               std::to_string(longest) + " tokens (data.sequence_length)",
           "end the list with " + std::to_string(longest));
  }
  return lengths;
}

std::shared_ptr<const std::vector<uint8_t>> length_classes(const Source& source,
                                                           const std::vector<int64_t>& lengths) {
  auto classes = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t own = source.length(i), length = own > 0 ? own : lengths.back();
    const auto fits = std::ranges::lower_bound(lengths, length);
    if (fits == lengths.end()) {
      throw Error(ErrorCode::kUsage,
                  "has " + std::to_string(length) + " tokens, more than data.lengths' last, " +
                      std::to_string(lengths.back()),
                  source.name(i), "raise data.sequence_length, or shorten the sample");
    }
    (*classes)[static_cast<size_t>(i)] = static_cast<uint8_t>(fits - lengths.begin());
  }
  return classes;
}

}  // namespace fleet::data
