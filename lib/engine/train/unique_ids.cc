#include "train/unique_ids.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace fleet {

void UniqueIds::clear(size_t expected) {
  ids_.clear();
  slots_.assign(std::bit_ceil(2 * expected + 1), 0);
}

void UniqueIds::expect(size_t more) {
  const size_t expected = ids_.size() + more;
  if (std::bit_ceil(2 * expected + 1) <= slots_.size()) return;
  const std::vector<uint64_t> before = std::move(ids_);
  clear(expected);
  for (const uint64_t id : before) add(id);
}

uint32_t UniqueIds::add(uint64_t id) {
  const size_t mask = slots_.size() - 1;
  // Fibonacci hashing: the upper bits are well mixed.
  size_t slot = ((id ^ (id >> 32)) * 0x9e3779b97f4a7c15u) >> 32 & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    if (ids_[slots_[slot] - 1] == id) return slots_[slot] - 1;
  }
  ids_.push_back(id);
  FLEET_CHECK(2 * ids_.size() <= slots_.size(), "more ids than expected");
  slots_[slot] = static_cast<uint32_t>(ids_.size());
  return slots_[slot] - 1;
}

void BatchIds::set(std::span<const std::byte> column, const std::string& table) {
  const size_t count = column.size() / sizeof(int64_t);
  unique_.clear(count);
  places_.resize(count);
  occurrences_.clear();
  for (size_t i = 0; i < count; ++i) {
    int64_t id = 0;
    std::memcpy(&id, column.data() + i * sizeof id, sizeof id);
    if (id < -1) {
      throw Error(ErrorCode::kUsage, "an id is " + std::to_string(id), "the table '" + table + "'",
                  "check the ids of the data: they are 0 or more, or -1 for none");
    }
    places_[i] = id < 0 ? -1 : static_cast<int64_t>(unique_.add(static_cast<uint64_t>(id)));
    if (id < 0) continue;
    const auto place = static_cast<size_t>(places_[i]);
    if (place == occurrences_.size()) occurrences_.push_back(0);
    ++occurrences_[place];
  }
}

}  // namespace fleet
