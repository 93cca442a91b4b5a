// Shrinking: rows that are old or seldom used end.
#include "ps/tables/table_shard.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {

void TableShard::decay(float* row) const {
  const auto factor = static_cast<float>(parts_.settings.decay);
  for (size_t at : {parts_.layout.show_at(), parts_.layout.show_at() + 1}) row[at] *= factor;
}

// Counts why the row ends, if it does.
bool TableShard::outlives(const float* row, uint32_t age, const ShrinkLimits& limits,
                          ShrinkResult* result) const {
  const TableSettings& settings = parts_.settings;
  const RowLayout& layout = parts_.layout;
  if (limits.max_age > 0 && age >= limits.max_age) {
    ++result->by_age;
    return false;
  }
  if (layout.scores) {
    const double shows = row[layout.show_at()], clicks = row[layout.show_at() + 1];
    const double score = settings.show_weight * (shows - clicks) + settings.click_weight * clicks;
    if (score < settings.min_score) {
      ++result->by_score;
      return false;
    }
  }
  if (layout.times) {
    uint32_t updated;
    std::memcpy(&updated, row + layout.time_at(), sizeof updated);
    if (limits.now >= updated && limits.now - updated >= settings.ttl) {
      ++result->by_ttl;
      return false;
    }
  }
  return true;
}

ShrinkResult TableShard::shrink(uint32_t now, int64_t max_age) {
  ShrinkResult result;
  const ShrinkLimits limits{now, max_age};
  ++shrinks_;
  const auto waiting_age = static_cast<uint32_t>(max_age > 0 ? max_age : int64_t{UINT32_MAX});
  std::vector<uint8_t> removed(rows_.count());
  std::vector<uint64_t> erased;
  index_.for_each([&](uint64_t id, uint32_t& word) {
    const uint32_t age = IndexWord::age(word) + 1;
    word = IndexWord::with_age(word, age);
    if (!IndexWord::is_row(word)) {
      result.waiting += age >= waiting_age;
      return;
    }
    const uint32_t slot = IndexWord::value(word);
    if (parts_.layout.scores) {
      change(id, slot, age);
      decay(rows_.row(slot));
    }
    if (outlives(rows_.row(slot), age, limits, &result)) return;
    removed[slot] = 1;
    if (parts_.cold) erased.push_back(id);
  });
  if (parts_.cold && cold_rows_ > 0) shrink_cold(limits, &erased, &result);
  if (parts_.cold && !erased.empty()) parts_.cold->erase(number_, erased);
  const int64_t ended = result.by_age + result.by_score + result.by_ttl;
  if (ended > 0) removed_version_ = version_;
  if (ended + result.waiting > 0) remove_rows(removed, waiting_age);
  hand_ = 0;
  return result;
}

void TableShard::shrink_cold(const ShrinkLimits& limits, std::vector<uint64_t>* erased,
                             ShrinkResult* result) {
  std::vector<std::byte> written;
  std::vector<float> row(parts_.layout.floats());
  int64_t ended = 0;
  parts_.cold->for_each(number_, /*at_cut=*/false, [&](std::span<const std::byte> record) {
    RecordHead head = record_head(record.data());
    const uint32_t* word = index_.find(head.id, mix_id(head.id));
    if (word != nullptr) return;  // an older copy of a row in memory
    std::memcpy(row.data(), &record[sizeof head], row.size() * sizeof(float));
    if (parts_.layout.scores) decay(row.data());
    if (!outlives(row.data(), age_of(head.used), limits, result)) {
      erased->push_back(head.id);
      ++ended;
    } else if (parts_.layout.scores) {
      head.version = static_cast<uint32_t>(version_);
      const auto* start = reinterpret_cast<const std::byte*>(&head);
      const auto* values = reinterpret_cast<const std::byte*>(row.data());
      written.insert(written.end(), start, start + sizeof head);
      written.insert(written.end(), values, values + row.size() * sizeof(float));
    }
  });
  if (!written.empty()) parts_.cold->write(number_, written, record_bytes(parts_.layout));
  cold_rows_ -= ended;
}

}  // namespace fleet::ps
