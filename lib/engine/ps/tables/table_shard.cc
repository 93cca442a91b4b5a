#include "ps/tables/table_shard.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.h"

namespace fleet::ps {
namespace {

constexpr size_t kAhead = 24;  // ids whose buckets are being loaded

}  // namespace

bool TableShard::admitted_at_once(uint64_t id, uint32_t occurrences) const {
  switch (parts_.settings.entry) {
    case TableSettings::Entry::kNone:
      return true;
    case TableSettings::Entry::kCount:
      return occurrences >= parts_.settings.entry_count;
    case TableSettings::Entry::kProbability:
      return parts_.initializer.draw(id) < parts_.settings.entry_probability;
  }
  return true;
}

void TableShard::fill(uint64_t id, float* row, uint32_t now) const {
  const RowLayout& layout = parts_.layout;
  parts_.initializer.fill(id, row, layout.dim);
  parts_.rule.begin(row + layout.dim, layout.dim);
  if (layout.scores) std::fill_n(row + layout.show_at(), 2, 0.0f);
  if (layout.times) std::memcpy(row + layout.time_at(), &now, sizeof now);
}

uint32_t TableShard::create(uint64_t id, uint64_t mixed, uint32_t* waiting_word, uint32_t now) {
  if (rows_.count() > IndexWord::kMaxValue) {
    throw Error(ErrorCode::kUnsupported, "a virtual shard has more than 4 million rows",
                "tables." + parts_.settings.name, "use several tables, or entry.kind 'count'");
  }
  const uint32_t slot = rows_.add();
  fill(id, rows_.row(slot), now);
  rows_.stamp(slot) = stamp_of(static_cast<uint32_t>(version_));
  if (parts_.cold) flags_.push_back(kUsed | kChanged);
  const uint32_t word = IndexWord::row(slot, 0);
  if (waiting_word != nullptr) {
    preserve_waiting(id, *waiting_word);
    *waiting_word = word;
  } else {
    index_.insert(id, mixed, word);
  }
  return slot;
}

void TableShard::change(uint64_t id, uint32_t slot, uint32_t age) {
  // An unchanged row is in the store, also as it was at the cut.
  const bool stored = parts_.cold && !(flags_[slot] & kChanged);
  if (parts_.cold) flags_[slot] |= kChanged;
  const auto current = static_cast<uint16_t>(version_ - base_);
  uint16_t& stamp = rows_.stamp(slot);
  if (stamp == current) return;
  if (preserving_ && !stored) preserve(id, slot, age);
  stamp = current;
}

void TableShard::touch(uint64_t id, uint32_t* word) {
  const uint32_t age = IndexWord::age(*word);
  if (age == 0) return;
  change(id, IndexWord::value(*word), age);
  *word = IndexWord::with_age(*word, 0);
}

void TableShard::preserve_waiting(uint64_t id, uint32_t word) {
  if (preserving_) preserved_waiting_.emplace(id, word);
}

uint32_t TableShard::admit(uint64_t id, uint64_t mixed, uint32_t occurrences, uint32_t now) {
  uint32_t* word = index_.find(id, mixed);
  if (word == nullptr) {
    if (admitted_at_once(id, occurrences)) return create(id, mixed, nullptr, now);
    if (parts_.settings.entry == TableSettings::Entry::kCount) {
      preserve_waiting(id, IndexWord::kEmpty);
      index_.insert(id, mixed, IndexWord::waiting(occurrences, 0));
    }
    return kNoRow;
  }
  if (IndexWord::is_row(*word)) {
    touch(id, word);
    return IndexWord::value(*word);
  }
  const uint64_t count = uint64_t{IndexWord::value(*word)} + occurrences;
  if (count >= static_cast<uint64_t>(parts_.settings.entry_count)) {
    return create(id, mixed, word, now);
  }
  preserve_waiting(id, *word);
  *word = IndexWord::waiting(static_cast<uint32_t>(count), 0);
  return kNoRow;
}

void TableShard::pull(const PullBatch& batch, std::span<const uint32_t> at, BatchScratch& scratch) {
  if (parts_.cold) load_missing(batch.ids, batch.mixed, at, scratch);
  const auto dim = static_cast<size_t>(parts_.layout.dim);
  std::vector<uint32_t>& slots = scratch.slots;
  slots.resize(at.size());
  bool without = false;
  for (size_t k = 0; k < at.size(); ++k) {
    if (k + kAhead < at.size()) index_.prefetch(batch.mixed[at[k + kAhead]]);
    const uint32_t i = at[k];
    slots[k] = admit(batch.ids[i], batch.mixed[i],
                     batch.occurrences != nullptr ? batch.occurrences[i] : 1, batch.now);
    if (slots[k] == kNoRow) {
      without = true;
    } else {
      rows_.prefetch(slots[k], dim);
    }
  }
  // A later occurrence in the batch may have admitted an id: all of its occurrences get the row.
  if (without && parts_.settings.entry == TableSettings::Entry::kCount) {
    for (size_t k = 0; k < at.size(); ++k) {
      if (slots[k] != kNoRow) continue;
      const uint32_t* word = index_.find(batch.ids[at[k]], batch.mixed[at[k]]);
      if (word != nullptr && IndexWord::is_row(*word)) slots[k] = IndexWord::value(*word);
    }
  }
  for (size_t k = 0; k < at.size(); ++k) {
    float* to = batch.rows + at[k] * dim;
    if (slots[k] == kNoRow) {
      std::fill_n(to, dim, 0.0f);
    } else {
      std::memcpy(to, rows_.row(slots[k]), dim * sizeof(float));
    }
  }
  if (parts_.cold) {
    for (const uint32_t slot : slots) {
      if (slot != kNoRow) flags_[slot] |= kUsed;
    }
    evict();
  }
}

MissingRows TableShard::lookup(const PullBatch& batch, std::span<const uint32_t> at) {
  const auto dim = static_cast<size_t>(parts_.layout.dim);
  MissingRows missing;
  for (size_t k = 0; k < at.size(); ++k) {
    if (k + kAhead < at.size()) index_.prefetch(batch.mixed[at[k + kAhead]]);
    const uint32_t i = at[k];
    const uint64_t id = batch.ids[i];
    float* to = batch.rows + i * dim;
    const uint32_t* word = index_.find(id, batch.mixed[i]);
    if (word != nullptr && IndexWord::is_row(*word)) {
      std::memcpy(to, rows_.row(IndexWord::value(*word)), dim * sizeof(float));
      continue;
    }
    bool found = false;
    if (parts_.cold != nullptr && word == nullptr) {
      parts_.cold->read(number_, {&id, 1}, [&](size_t, std::span<const std::byte> record) {
        std::memcpy(to, &record[sizeof(RecordHead)], dim * sizeof(float));
        found = true;
      });
    }
    if (found) continue;
    if (word == nullptr && admitted_at_once(id, 1)) {
      ++missing.initial;
      parts_.initializer.fill(id, to, parts_.layout.dim);
    } else {
      ++missing.not_admitted;
      std::fill_n(to, dim, 0.0f);
    }
  }
  return missing;
}

uint32_t TableShard::slot_for_push(uint64_t id, uint64_t mixed, uint32_t now) {
  uint32_t* word = index_.find(id, mixed);
  if (word == nullptr) return admitted_at_once(id, 1) ? create(id, mixed, nullptr, now) : kNoRow;
  if (!IndexWord::is_row(*word)) return kNoRow;
  touch(id, word);
  return IndexWord::value(*word);
}

int64_t TableShard::push(const PushBatch& batch, std::span<const uint32_t> at,
                         BatchScratch& scratch) {
  if (parts_.cold) load_missing(batch.ids, batch.mixed, at, scratch);
  std::vector<uint32_t>& slots = scratch.slots;
  slots.resize(at.size());
  int64_t ignored = 0;
  for (size_t k = 0; k < at.size(); ++k) {
    if (k + kAhead < at.size()) index_.prefetch(batch.mixed[at[k + kAhead]]);
    slots[k] = slot_for_push(batch.ids[at[k]], batch.mixed[at[k]], batch.now);
    if (slots[k] == kNoRow) {
      ++ignored;
    } else {
      rows_.prefetch(slots[k], rows_.floats());
      rows_.prefetch_stamp(slots[k]);
    }
  }
  update(batch, at, chain_duplicates(at, scratch), scratch);
  if (parts_.cold) {
    for (const uint32_t slot : slots) {
      if (slot != kNoRow) flags_[slot] |= kUsed;
    }
    evict();
  }
  return ignored;
}

// Finds the occurrences of each row: firsts[u] is the first one, and chains[k] the next after k.
size_t TableShard::chain_duplicates(std::span<const uint32_t> at, BatchScratch& scratch) const {
  const size_t size = std::bit_ceil(2 * at.size() + 1);
  const int shift = 64 - std::countr_zero(size);
  scratch.heads.assign(size, kNoRow);
  for (auto* list : {&scratch.chains, &scratch.firsts, &scratch.lasts}) list->resize(at.size());
  uint32_t unique = 0;
  for (uint32_t k = 0; k < at.size(); ++k) {
    const uint32_t slot = scratch.slots[k];
    scratch.chains[k] = kNoRow;
    if (slot == kNoRow) continue;
    size_t head = (slot * 0x9e3779b97f4a7c15u) >> shift;
    while (scratch.heads[head] != kNoRow &&
           scratch.slots[scratch.firsts[scratch.heads[head]]] != slot) {
      head = (head + 1) & (size - 1);
    }
    uint32_t& row = scratch.heads[head];
    if (row == kNoRow) {
      row = unique++;
      scratch.firsts[row] = k;
    } else {
      scratch.chains[scratch.lasts[row]] = k;
    }
    scratch.lasts[row] = k;
  }
  return unique;
}

void TableShard::update(const PushBatch& batch, std::span<const uint32_t> at, size_t unique,
                        BatchScratch& scratch) {
  const RowLayout& layout = parts_.layout;
  const auto dim = static_cast<size_t>(layout.dim);
  scratch.sum.resize(dim);
  for (size_t u = 0; u < unique; ++u) {
    const uint32_t first = scratch.firsts[u], slot = scratch.slots[first];
    const float* gradient = batch.gradients + at[first] * dim;
    float shows = batch.shows != nullptr ? batch.shows[at[first]] : 1;
    float clicks = batch.clicks != nullptr ? batch.clicks[at[first]] : 0;
    if (scratch.chains[first] != kNoRow) {
      std::copy_n(gradient, dim, scratch.sum.data());
      for (uint32_t k = scratch.chains[first]; k != kNoRow; k = scratch.chains[k]) {
        const float* more = batch.gradients + at[k] * dim;
        for (size_t j = 0; j < dim; ++j) scratch.sum[j] += more[j];
        shows += batch.shows != nullptr ? batch.shows[at[k]] : 1;
        clicks += batch.clicks != nullptr ? batch.clicks[at[k]] : 0;
      }
      gradient = scratch.sum.data();
    }
    change(batch.ids[at[first]], slot, 0);
    float* row = rows_.row(slot);
    if (batch.differences) {
      for (size_t j = 0; j < dim; ++j) row[j] += gradient[j];
    } else {
      parts_.rule.update({.values = row,
                          .state = row + dim,
                          .gradient = gradient,
                          .dim = layout.dim,
                          .shows = batch.means ? 1 : shows,
                          .learning_rate = batch.learning_rate});
    }
    if (layout.scores) {
      row[layout.show_at()] += shows;
      row[layout.show_at() + 1] += clicks;
    }
    if (layout.times) std::memcpy(row + layout.time_at(), &batch.now, sizeof batch.now);
  }
}

}  // namespace fleet::ps
