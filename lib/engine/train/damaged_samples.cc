#include "train/damaged_samples.h"

#include <algorithm>
#include <set>

namespace fleet {

int64_t count_damaged(const data::InputPipeline& pipeline, RankCoordinator& control) {
  const std::vector<int64_t> own = pipeline.damaged();
  const double count = static_cast<double>(own.size());
  size_t most = 0;
  for (const auto& rank : control.by_rank({&count, 1})) {
    most = std::max(most, static_cast<size_t>(rank[0]));
  }
  if (most == 0) return 0;
  std::vector<double> padded(own.begin(), own.end());
  padded.resize(most, -1);
  std::set<double> all;
  for (const auto& rank : control.by_rank(padded)) all.insert(rank.begin(), rank.end());
  return static_cast<int64_t>(all.size() - all.count(-1));
}

}  // namespace fleet
