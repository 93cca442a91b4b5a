#include "text/unigram.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fleet::text {
namespace {

std::vector<int64_t> counts_of(const TokenFile& file, size_t ids) {
  std::vector<int64_t> counts(ids);
  std::vector<uint32_t> part(1 << 16);
  for (int64_t begin = 0; begin < file.size(); begin += std::ssize(part)) {
    const auto count = std::min<int64_t>(std::ssize(part), file.size() - begin);
    const auto read = std::span(part).first(static_cast<size_t>(count));
    file.copy(begin, read);
    for (const uint32_t id : read) ++counts[id];
  }
  return counts;
}

}  // namespace

double unigram_loss(const TokenFile& training, const TokenFile& evaluated) {
  if (evaluated.size() == 0) return 0;
  const size_t ids = size_t{1} + std::max(training.largest_id(), evaluated.largest_id());
  const std::vector<int64_t> trained = counts_of(training, ids), seen = counts_of(evaluated, ids);
  const double all = static_cast<double>(training.size()) + static_cast<double>(ids);
  double sum = 0;
  for (size_t id = 0; id < ids; ++id) {
    if (seen[id] == 0) continue;
    sum -= static_cast<double>(seen[id]) * std::log(static_cast<double>(trained[id] + 1) / all);
  }
  return sum / static_cast<double>(evaluated.size());
}

}  // namespace fleet::text
