#include "text/word_counts.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace fleet::text {

void WordTable::add(std::string_view word, uint64_t count) {
  add_hashed(word, hash_text(word), count);
}

void WordTable::add_hashed(std::string_view word, uint64_t hash, uint64_t count) {
  if (count == 0) return;
  if (2 * (size_ + 1) > slots_.size()) grow();
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Entry& entry = slots_[at];
    if (entry.count == 0) {
      entry = {.hash = hash,
               .begin = bytes_.size(),
               .count = count,
               .bytes = static_cast<uint32_t>(word.size())};
      bytes_ += word;
      ++size_;
      return;
    }
    if (entry.hash == hash && this->word(entry) == word) {
      entry.count += count;
      return;
    }
  }
}

void WordTable::grow() {
  std::vector<Entry> old(std::max<size_t>(1024, 2 * slots_.size()));
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.count == 0) continue;
    size_t at = entry.hash & mask;
    while (slots_[at].count > 0) at = (at + 1) & mask;
    slots_[at] = entry;
  }
}

void WordTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Entry());
  bytes_.clear();
  size_ = 0;
}

void WordCounts::add(const WordTable& table) {
  // The low bits choose the slot in a table, so the high ones choose the shard.
  std::array<std::vector<const WordTable::Entry*>, kShards> parts;
  for (const WordTable::Entry& entry : table.slots()) {
    if (entry.count > 0) parts[entry.hash >> 58].push_back(&entry);
  }
  static_assert(kShards == 64);
  for (size_t i = 0; i < kShards; ++i) {
    if (parts[i].empty()) continue;
    const MutexLock lock(shards_[i].mutex);
    for (const WordTable::Entry* entry : parts[i]) {
      shards_[i].table.add_hashed(table.word(*entry), entry->hash, entry->count);
    }
  }
}

std::vector<WordCount> WordCounts::words() const {
  std::vector<WordCount> all;
  for (const Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    for (const WordTable::Entry& entry : shard.table.slots()) {
      if (entry.count > 0) all.push_back({shard.table.word(entry), entry.count});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const WordCount& a, const WordCount& b) { return a.word < b.word; });
  return all;
}

}  // namespace fleet::text
