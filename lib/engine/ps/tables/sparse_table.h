// A sparse table: rows of float32 by 64-bit id, created when they are needed. Settings: section
// tables.NAME of a job. A server has some of the 1000 virtual shards.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "ps/tables/shard_workers.h"
#include "ps/tables/table_shard.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {

struct TablePush {
  std::span<const float> shows = {};         // for each id; empty: 1
  std::span<const float> clicks = {};        // for each id; empty: 0
  std::optional<double> learning_rate = {};  // default: the rule's
  // The gradients are of a mean over the samples of a step: rules do not divide them by the shows,
  // which count for scores only.
  bool means = false;
  // The gradients are differences, which are added to the values without the rule and its bounds.
  bool differences = false;
};

struct TableCounts {
  int64_t rows = 0;
  int64_t waiting = 0;          // ids that occurred, without a row yet
  int64_t bytes = 0;            // memory
  int64_t missing_lookups = 0;  // ids of lookup() without a row, since the start
  int64_t ignored_pushes = 0;   // gradients for ids without a row
};

// Any thread, unless stated otherwise. Calls with an id of another server throw kInternal.
class SparseTable {
 public:
  // clock: seconds since 1970, for the ttl. kNoMemory; kIo and kUnsupported of its storage.
  explicit SparseTable(TableSettings settings, ShardRange shards = {}, Clock clock = unix_seconds);
  ~SparseTable();

  const TableSettings& settings() const { return settings_; }
  const RowLayout& layout() const { return parts_.layout; }
  ShardRange shards() const { return range_; }

  // In training: counts the ids' occurrences, creates the rows of admitted ids, and copies rows to
  // [ids.size(), dim]; zeros for ids without a row. occurrences: one number per id; empty: 1 each.
  // An id that is there twice has two occurrences and the same row.
  void pull(std::span<const uint64_t> ids, std::span<float> rows,
            std::span<const uint32_t> occurrences = {});
  // In predictions: changes nothing. An unknown id has the row that it would begin with; zeros if
  // `entry` would not admit it. Returns the number of these ids.
  MissingRows lookup(std::span<const uint64_t> ids, std::span<float> rows) const;
  // gradients: [ids.size(), dim]. Gradients of the same id are added in order of occurrence, then
  // its row is updated once. Ids without a row are ignored, unless their first occurrence is
  // admitted.
  void push(std::span<const uint64_t> ids, std::span<const float> gradients,
            const TablePush& options = {});
  // Ages all rows by one and removes those that the settings name. max_age: instead of the
  // settings'; 0: none. kUsage during a cut.
  ShrinkResult shrink(std::optional<int64_t> max_age = {});

  TableCounts counts() const;

  // --- snapshots (ps/tables/snapshot.h) ---

  // Changes up to here belong to version(), later ones to the next. Waits for the calls in
  // progress; a call is before the cut or behind it as a whole. Then each shard is read once, while
  // others call on: rows that change before are copied. kUsage if there is a cut.
  void begin_cut();
  // since: 0 for all; else an earlier version().
  ShardContent take_cut(int shard, int64_t since = 0);
  // Ends the cut. Shards that were not read are dropped.
  void end_cut();
  // The version of the present changes; it begins with 1.
  int64_t version() const { return version_; }
  int64_t shrinks() const { return shrinks_; }
  // For an empty table, before any other call: begin_restore() with the numbers of the cut, then
  // restore() with the full content of each shard.
  void begin_restore(int64_t version, int64_t shrinks);
  void restore(const ShardContent& content);

 private:
  struct LockedShard {
    LockedShard(const TableParts& parts, int number) : shard(parts, number) {}
    mutable Mutex mutex;
    TableShard shard FLEET_GUARDED_BY(mutex);
    void prefetch(uint64_t mixed) const FLEET_NO_THREAD_SAFETY_ANALYSIS { shard.prefetch(mixed); }
  };
  // Calls that change rows pass it together; a cut or a shrink passes it alone.
  class Gate {
   public:
    void enter();
    void leave();
    void close();  // waits until all have left
    void open();

   private:
    Mutex mutex_;
    CondVar changed_;
    int inside_ FLEET_GUARDED_BY(mutex_) = 0;
    bool closed_ FLEET_GUARDED_BY(mutex_) = false;
  };
  struct Batch;

  LockedShard& locked(int shard) const;
  void sort_by_shard(std::span<const uint64_t> ids, Batch* batch) const;
  // The sum of visit(shard, positions, scratch).
  template <typename Visit>
  int64_t for_shards(const Batch& batch, BatchScratch& scratch, const Visit& visit) const;
  template <typename Visit>
  int64_t for_cold_shards(const Batch& batch, const Visit& visit) const;
  uint32_t now() const { return static_cast<uint32_t>(clock_()); }
  void check_sizes(size_t ids, size_t values) const;

  const TableSettings settings_;
  const ShardRange range_;
  const Clock clock_;
  const std::unique_ptr<TableRule> rule_;
  const RowInitializer initializer_;
  BlockArena index_arena_, row_arena_;
  std::unique_ptr<ColdStore> cold_;
  const TableParts parts_;
  std::vector<std::unique_ptr<LockedShard>> shards_;
  std::unique_ptr<ShardWorkers> workers_;  // null: all rows are in memory
  mutable Gate gate_;
  std::atomic<bool> cutting_{false};
  std::atomic<int64_t> version_{1}, shrinks_{0};
  mutable std::atomic<int64_t> missing_lookups_{0};
  std::atomic<int64_t> ignored_pushes_{0};
};

}  // namespace fleet::ps
