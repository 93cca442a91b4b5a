// The content of a shard for snapshots, and its rows outside of memory.
#include <algorithm>

#include "base/error.h"
#include "ps/tables/table_shard.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

// Stamps have 16 bits. Changes that are older than kKeptVersions cuts are all taken as equally old.
constexpr int64_t kMaxStamp = 65'000, kKeptVersions = 32'768;

}  // namespace

uint32_t TableShard::used_of(uint32_t age) const { return static_cast<uint32_t>(shrinks_) - age; }

uint32_t TableShard::age_of(uint32_t used) const {
  const int64_t age = shrinks_ - int64_t{used};
  return static_cast<uint32_t>(std::clamp<int64_t>(age, 0, IndexWord::kMaxAge));
}

uint16_t TableShard::stamp_of(uint32_t version) const {
  return static_cast<uint16_t>(std::clamp<int64_t>(int64_t{version} - base_, 0, UINT16_MAX));
}

void TableShard::append_record(uint64_t id, uint32_t slot, uint32_t age,
                               std::vector<std::byte>* to) const {
  const RecordHead head{
      .id = id, .version = static_cast<uint32_t>(base_ + rows_.stamp(slot)), .used = used_of(age)};
  const size_t at = to->size();
  to->resize(at + record_bytes(parts_.layout));
  std::memcpy(&(*to)[at], &head, sizeof head);
  std::memcpy(&(*to)[at + sizeof head], rows_.row(slot), rows_.floats() * sizeof(float));
}

void TableShard::put(std::span<const std::byte> record, bool changed) {
  FLEET_CHECK(record.size() == record_bytes(parts_.layout), "a row has another size");
  const RecordHead head = record_head(record.data());
  const uint32_t slot = rows_.add();
  std::memcpy(rows_.row(slot), &record[sizeof head], rows_.floats() * sizeof(float));
  rows_.stamp(slot) = stamp_of(head.version);
  if (parts_.cold) flags_.push_back(changed ? kUsed | kChanged : kUsed);
  index_.insert(head.id, mix_id(head.id), IndexWord::row(slot, age_of(head.used)));
}

void TableShard::rebase_stamps() {
  if (version_ - base_ < kMaxStamp) return;
  const int64_t base = version_ - kKeptVersions, less = base - base_;
  for (uint32_t slot = 0; slot < rows_.count(); ++slot) {
    uint16_t& stamp = rows_.stamp(slot);
    stamp = static_cast<uint16_t>(std::max<int64_t>(0, stamp - less));
  }
  base_ = base;
}

void TableShard::preserve(uint64_t id, uint32_t slot, uint32_t age) {
  append_record(id, slot, age, &preserved_);
  const size_t most = parts_.cached_rows / 16 * record_bytes(parts_.layout);
  if (parts_.cold && preserved_.size() > most) store_preserved();
}

void TableShard::store_preserved() {
  parts_.cold->write(preserved_shard(), preserved_, record_bytes(parts_.layout));
  stored_preserved_ = true;
  preserved_.clear();
}

void TableShard::read_preserved() {
  if (!stored_preserved_) return;
  parts_.cold->for_each(preserved_shard(), /*at_cut=*/false,
                        [&](std::span<const std::byte> record) {
                          preserved_.insert(preserved_.end(), record.begin(), record.end());
                        });
}

void TableShard::erase_preserved() {
  if (!stored_preserved_) return;
  std::vector<uint64_t> ids;
  parts_.cold->for_each(
      preserved_shard(), /*at_cut=*/false,
      [&](std::span<const std::byte> record) { ids.push_back(record_head(record.data()).id); });
  parts_.cold->erase(preserved_shard(), ids);
  stored_preserved_ = false;
}

void TableShard::begin_cut() {
  erase_preserved();  // left by a cut that was dropped
  rebase_stamps();
  ++version_;
  preserving_ = true;
}

void TableShard::drop_cut() {
  preserving_ = false;
  preserved_ = {};
  preserved_waiting_ = {};
}

ShardContent TableShard::take_cut(int64_t since) {
  FLEET_CHECK(preserving_, "a shard is read without a cut, or twice");
  read_preserved();
  const bool full = since <= 0 || removed_version_ > since;
  const size_t bytes = record_bytes(parts_.layout);
  struct Item {
    uint64_t id;
    const std::byte* record;  // null: the row at `slot`
    uint32_t slot, age;
  };
  std::vector<Item> items;
  ShardContent content{.shard = number_, .full = full};
  const auto current = static_cast<uint16_t>(version_ - base_);
  index_.for_each([&](uint64_t id, uint32_t word) {
    if (!IndexWord::is_row(word)) {
      if (preserved_waiting_.contains(id)) return;
      content.waiting.push_back({id, IndexWord::value(word), used_of(IndexWord::age(word))});
    } else if (rows_.stamp(IndexWord::value(word)) != current) {
      items.push_back({id, nullptr, IndexWord::value(word), IndexWord::age(word)});
    }
  });
  for (size_t at = 0; at < preserved_.size(); at += bytes) {
    items.push_back({record_head(&preserved_[at]).id, &preserved_[at], 0, 0});
  }
  for (const auto& [id, word] : preserved_waiting_) {
    if (word == IndexWord::kEmpty) continue;
    content.waiting.push_back({id, IndexWord::value(word), used_of(IndexWord::age(word))});
  }
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  std::sort(items.begin(), items.end(), by_id);
  // Rows that left the memory after the cut and came back are there twice, with the same bytes.
  const auto same_id = [](const Item& a, const Item& b) { return a.id == b.id; };
  items.erase(std::unique(items.begin(), items.end(), same_id), items.end());
  std::sort(content.waiting.begin(), content.waiting.end(), by_id);
  std::vector<std::byte> cold;
  if (parts_.cold != nullptr) {
    // A store may hold an older copy of a row in memory.
    parts_.cold->for_each(number_, /*at_cut=*/true, [&](std::span<const std::byte> record) {
      const Item item{record_head(record.data()).id, nullptr, 0, 0};
      if (std::binary_search(items.begin(), items.end(), item, by_id)) return;
      cold.insert(cold.end(), record.begin(), record.end());
    });
    for (size_t at = 0; at < cold.size(); at += bytes) {
      items.push_back({record_head(&cold[at]).id, &cold[at], 0, 0});
    }
    std::sort(items.begin(), items.end(), by_id);
  }
  const auto changed = [&](uint32_t version) { return full || version > since; };
  if (full) content.records.reserve(items.size() * bytes);
  for (const Item& item : items) {
    if (item.record == nullptr) {
      if (changed(static_cast<uint32_t>(base_ + rows_.stamp(item.slot)))) {
        append_record(item.id, item.slot, item.age, &content.records);
      }
    } else if (changed(record_head(item.record).version)) {
      content.records.insert(content.records.end(), item.record, item.record + bytes);
    }
  }
  erase_preserved();
  drop_cut();
  return content;
}

void TableShard::begin_restore(int64_t version, int64_t shrinks) {
  version_ = version;
  base_ = version >= kMaxStamp ? version - kKeptVersions : 0;
  shrinks_ = shrinks;
}

void TableShard::restore(const ShardContent& content) {
  FLEET_CHECK(index_.size() == 0 && content.full, "a shard is restored that is not empty");
  const size_t bytes = record_bytes(parts_.layout);
  for (size_t at = 0; at < content.records.size(); at += bytes) {
    put(std::span(content.records).subspan(at, bytes), /*changed=*/true);
    if (parts_.cold) evict();
  }
  for (const WaitingRecord& waiting : content.waiting) {
    index_.insert(waiting.id, mix_id(waiting.id),
                  IndexWord::waiting(waiting.count, age_of(waiting.used)));
  }
}

void TableShard::remove_rows(const std::vector<uint8_t>& removed, uint32_t waiting_age) {
  const auto gone = static_cast<uint32_t>(std::count(removed.begin(), removed.end(), uint8_t{1}));
  const uint32_t count = rows_.count(), kept = count - gone;
  std::vector<uint32_t> moved(gone, kNoRow);  // by slot - kept
  uint32_t hole = 0;
  for (uint32_t slot = kept; slot < count; ++slot) {
    if (removed[slot]) continue;
    while (!removed[hole]) ++hole;
    rows_.copy(slot, hole);
    if (parts_.cold) flags_[hole] = flags_[slot];
    moved[slot - kept] = hole++;
  }
  index_.retain([&](uint64_t, uint32_t& word) {
    const uint32_t age = IndexWord::age(word);
    if (!IndexWord::is_row(word)) return age < waiting_age;
    const uint32_t slot = IndexWord::value(word);
    if (removed[slot]) return false;
    if (slot >= kept) word = IndexWord::row(moved[slot - kept], age);
    return true;
  });
  rows_.resize(kept);
  if (parts_.cold) flags_.resize(kept);
}

void TableShard::load_missing(const uint64_t* ids, const uint64_t* mixed,
                              std::span<const uint32_t> at, BatchScratch& scratch) {
  if (cold_rows_ == 0) return;
  std::vector<uint64_t>& missing = scratch.missing;
  missing.clear();
  for (const uint32_t i : at) {
    if (index_.find(ids[i], mixed[i]) == nullptr) missing.push_back(ids[i]);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty()) return;
  parts_.cold->read(number_, missing, [&](size_t, std::span<const std::byte> record) {
    put(record, /*changed=*/false);
    --cold_rows_;
  });
}

void TableShard::evict() {
  const uint32_t count = rows_.count();
  if (count <= parts_.cached_rows + parts_.cached_rows / 8 + 1) return;
  // The clock algorithm: rows that were used since the hand passed them last stay.
  std::vector<uint8_t> chosen(count);
  const auto wanted = static_cast<uint32_t>(count - parts_.cached_rows);
  for (uint32_t found = 0; found < wanted; ++hand_) {
    if (hand_ >= count) hand_ = 0;
    if (chosen[hand_]) continue;
    if (flags_[hand_] & kUsed) {
      flags_[hand_] &= static_cast<uint8_t>(~kUsed);
    } else {
      chosen[hand_] = 1;
      ++found;
    }
  }
  const auto current = static_cast<uint16_t>(version_ - base_);
  std::vector<std::pair<uint64_t, uint32_t>> written;  // ids and words
  index_.for_each([&](uint64_t id, uint32_t word) {
    if (!IndexWord::is_row(word)) return;
    const uint32_t slot = IndexWord::value(word);
    if (!chosen[slot]) return;
    if (!(flags_[slot] & kChanged)) return;  // the store has it, and had it at the cut
    if (preserving_ && rows_.stamp(slot) != current) preserve(id, slot, IndexWord::age(word));
    written.emplace_back(id, word);
  });
  std::sort(written.begin(), written.end());
  std::vector<std::byte> records;
  for (const auto& [id, word] : written) {
    append_record(id, IndexWord::value(word), IndexWord::age(word), &records);
  }
  parts_.cold->write(number_, records, record_bytes(parts_.layout));
  remove_rows(chosen, /*waiting_age=*/UINT32_MAX);
  cold_rows_ += wanted;
  hand_ = 0;
}

}  // namespace fleet::ps
