// One virtual shard of a sparse table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ps/tables/cold_store.h"
#include "ps/tables/missing_rows.h"
#include "ps/tables/row_chunks.h"
#include "ps/tables/row_index.h"
#include "ps/tables/row_record.h"
#include "ps/tables/table_rule.h"
#include "ps/tables/table_settings.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {

// Things that all shards of a table share.
struct TableParts {
  const TableSettings& settings;
  const RowLayout layout;
  const TableRule& rule;
  const RowInitializer& initializer;
  BlockArena& index_arena;
  BlockArena& row_arena;
  ColdStore* cold = nullptr;  // null: all rows are in memory
  size_t cached_rows = 0;     // per shard
};

// A batch of ids. Values of id i: rows[i * dim]...
struct PullBatch {
  const uint64_t* ids;
  const uint64_t* mixed;        // mix_id() of each
  const uint32_t* occurrences;  // null: 1 each
  float* rows;
  uint32_t now;  // seconds since 1970
};
struct PushBatch {
  const uint64_t* ids;
  const uint64_t* mixed;
  const float* gradients;
  const float* shows;   // null: 1 each
  const float* clicks;  // null: 0 each
  float learning_rate;
  bool means;        // TablePush::means
  bool differences;  // TablePush::differences
  uint32_t now;
};

// Buffers of the calling thread.
struct BatchScratch {
  std::vector<uint32_t> slots, chains, heads, firsts, lasts;
  std::vector<uint64_t> missing;
  std::vector<float> sum;
};

struct ShrinkResult {
  int64_t by_age = 0, by_score = 0, by_ttl = 0;
  int64_t waiting = 0;  // ids without a row
};

// Not thread-safe, except for prefetch(). In all calls, `at` holds positions in the batch, of ids
// of this shard, ascending.
class TableShard {
 public:
  TableShard(const TableParts& parts, int number)
      : parts_(parts),
        number_(number),
        index_(parts.index_arena),
        rows_(parts.layout, parts.row_arena) {}

  void prefetch(uint64_t mixed) const { index_.prefetch(mixed); }
  // Counts the occurrences, creates rows that are admitted, and copies them; zeros for the others.
  void pull(const PullBatch& batch, std::span<const uint32_t> at, BatchScratch& scratch);
  // Changes nothing. Returns the number of ids without a row: their values equal a new row's,
  // or zeros if the first occurrence would not be admitted.
  MissingRows lookup(const PullBatch& batch, std::span<const uint32_t> at);
  // Returns the number of gradients that were ignored because the id has no row.
  int64_t push(const PushBatch& batch, std::span<const uint32_t> at, BatchScratch& scratch);
  // max_age: removes rows of this age and more; 0: none.
  ShrinkResult shrink(uint32_t now, int64_t max_age);

  // Content at the current version is preserved until take_cut() or drop_cut(). Later changes
  // belong to the next version.
  void begin_cut();
  // since: 0 for all; else only rows that changed after this version.
  ShardContent take_cut(int64_t since);
  void drop_cut();

  // For an empty shard. version: the next changes'; shrinks: done so far.
  void begin_restore(int64_t version, int64_t shrinks);
  // full content of an empty shard, after begin_restore().
  void restore(const ShardContent& content);

  int64_t rows() const { return static_cast<int64_t>(rows_.count()) + cold_rows_; }
  int64_t waiting() const { return static_cast<int64_t>(index_.size()) - rows_.count(); }
  int64_t preserved() const { return static_cast<int64_t>(preserved_.capacity()); }  // bytes

 private:
  static constexpr uint32_t kNoRow = 0xFFFFFFFF;
  static constexpr uint8_t kUsed = 1, kChanged = 2;  // flags of cached rows

  bool admitted_at_once(uint64_t id, uint32_t occurrences) const;
  uint32_t admit(uint64_t id, uint64_t mixed, uint32_t occurrences, uint32_t now);
  uint32_t create(uint64_t id, uint64_t mixed, uint32_t* waiting_word, uint32_t now);
  uint32_t slot_for_push(uint64_t id, uint64_t mixed, uint32_t now);
  void fill(uint64_t id, float* row, uint32_t now) const;
  void touch(uint64_t id, uint32_t* word);
  // Call it before a row changes: preserves it for a cut, and stamps it.
  void change(uint64_t id, uint32_t slot, uint32_t age);
  void preserve(uint64_t id, uint32_t slot, uint32_t age);
  void preserve_waiting(uint64_t id, uint32_t word);
  // Preserved records that are too many for the memory are in the cold store, as a shard of their
  // own.
  int preserved_shard() const { return kVirtualShards + number_; }
  void store_preserved();
  void read_preserved();
  void erase_preserved();
  size_t chain_duplicates(std::span<const uint32_t> at, BatchScratch& scratch) const;
  void update(const PushBatch& batch, std::span<const uint32_t> at, size_t unique,
              BatchScratch& scratch);
  void append_record(uint64_t id, uint32_t slot, uint32_t age, std::vector<std::byte>* to) const;
  uint32_t used_of(uint32_t age) const;
  uint32_t age_of(uint32_t used) const;
  uint16_t stamp_of(uint32_t version) const;
  void rebase_stamps();
  void put(std::span<const std::byte> record, bool changed);
  // removed[slot]: these rows end; the others move together. Waiting ids of `waiting_age` and more
  // end, too.
  void remove_rows(const std::vector<uint8_t>& removed, uint32_t waiting_age);
  struct ShrinkLimits {
    uint32_t now;
    int64_t max_age;  // 0: none
  };
  bool outlives(const float* row, uint32_t age, const ShrinkLimits& limits,
                ShrinkResult* result) const;
  void decay(float* row) const;
  void shrink_cold(const ShrinkLimits& limits, std::vector<uint64_t>* erased, ShrinkResult* result);
  // Cold rows: loads the missing ids of a batch, and evicts rows while there are too many.
  void load_missing(const uint64_t* ids, const uint64_t* mixed, std::span<const uint32_t> at,
                    BatchScratch& scratch);
  void evict();

  const TableParts& parts_;
  const int number_;
  RowIndex index_;
  RowChunks rows_;
  int64_t version_ = 1, base_ = 0;  // a stamp is a version less the base
  int64_t shrinks_ = 0;
  int64_t removed_version_ = 0;  // the version at which rows were removed last
  bool preserving_ = false;
  std::vector<std::byte> preserved_;                          // records that changed after the cut
  bool stored_preserved_ = false;                             // some are in the cold store
  std::unordered_map<uint64_t, uint32_t> preserved_waiting_;  // words; kEmpty: not there at the cut
  int64_t cold_rows_ = 0;                                     // those that are not in memory
  std::vector<uint8_t> flags_;                                // by slot; empty without a cold store
  uint32_t hand_ = 0;                                         // the slot that evict() tries next
};

}  // namespace fleet::ps
