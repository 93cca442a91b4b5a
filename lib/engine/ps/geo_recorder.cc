#include "ps/geo_recorder.h"

#include <algorithm>
#include <utility>

namespace fleet::ps {

void GeoRecorder::pushed(std::span<const uint64_t> ids) {
  for (Pending& pending : ids_) {
    if (!pending.left) pending.ids.insert(ids.begin(), ids.end());
  }
}

std::vector<uint64_t> GeoRecorder::take(int trainer) {
  const auto taken = std::exchange(ids_[static_cast<size_t>(trainer)].ids, {});
  std::vector<uint64_t> ids(taken.begin(), taken.end());
  std::ranges::sort(ids);
  return ids;
}

void GeoRecorder::begin(int trainer) { ids_[static_cast<size_t>(trainer)] = {}; }

void GeoRecorder::leave(int trainer) { ids_[static_cast<size_t>(trainer)] = {.left = true}; }

}  // namespace fleet::ps
