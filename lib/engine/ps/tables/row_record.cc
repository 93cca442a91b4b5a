#include "ps/tables/row_record.h"

#include <utility>

namespace fleet::ps {

void merge_content(ShardContent changes, size_t record_bytes, ShardContent* content) {
  content->waiting = std::move(changes.waiting);
  if (changes.full) {
    content->records = std::move(changes.records);
    content->full = true;
    return;
  }
  const std::vector<std::byte>&before = content->records, &after = changes.records;
  std::vector<std::byte> merged;
  merged.reserve(before.size() + after.size());
  size_t b = 0, a = 0;
  const auto take = [&](const std::vector<std::byte>& from, size_t& at) {
    merged.insert(merged.end(), from.begin() + static_cast<std::ptrdiff_t>(at),
                  from.begin() + static_cast<std::ptrdiff_t>(at + record_bytes));
    at += record_bytes;
  };
  while (b < before.size() && a < after.size()) {
    const uint64_t old_id = record_head(&before[b]).id, new_id = record_head(&after[a]).id;
    if (old_id == new_id) b += record_bytes;
    if (old_id < new_id) {
      take(before, b);
    } else {
      take(after, a);
    }
  }
  while (b < before.size()) take(before, b);
  while (a < after.size()) take(after, a);
  content->records = std::move(merged);
}

}  // namespace fleet::ps
