#include "ps/tables/sparse_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file_name.h"

namespace fleet::ps {
namespace {

constexpr size_t kAhead = 24;  // ids of the next shards whose buckets are being loaded
constexpr int kReaders = 4;    // reads of the disk that overlap, besides those of the callers

// Servers on one host may have the same settings.
std::string folder_of(const TableSettings& settings, const ShardRange& shards) {
  return settings.path + "/" + file_name_component(settings.name) + "-" +
         std::to_string(shards.first) + "-" + std::to_string(shards.end);
}

TableParts parts_of(const TableSettings& settings, const TableRule& rule,
                    const RowInitializer& initializer, BlockArena& index, BlockArena& rows,
                    ColdStore* cold, int shards) {
  const auto cached = static_cast<size_t>(settings.cached_rows(shards) / std::max(1, shards));
  return {.settings = settings,
          .layout = settings.layout(),
          .rule = rule,
          .initializer = initializer,
          .index_arena = index,
          .row_arena = rows,
          .cold = cold,
          .cached_rows = cached};
}

}  // namespace

// The ids of a call, ordered by shard and then by occurrence.
struct SparseTable::Batch {
  std::vector<uint64_t> mixed;
  std::vector<uint32_t> order;
  std::vector<uint32_t> ends;  // by shard: behind its last position in `order`
  BatchScratch scratch;

  static Batch& of_thread() {
    thread_local Batch batch;
    return batch;
  }
};

void SparseTable::Gate::enter() {
  const MutexLock lock(mutex_);
  while (closed_) changed_.wait(mutex_);
  ++inside_;
}
void SparseTable::Gate::leave() {
  const MutexLock lock(mutex_);
  if (--inside_ == 0) changed_.notify_all();
}
void SparseTable::Gate::close() {
  const MutexLock lock(mutex_);
  while (closed_) changed_.wait(mutex_);
  closed_ = true;
  while (inside_ > 0) changed_.wait(mutex_);
}
void SparseTable::Gate::open() {
  const MutexLock lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

namespace {

// Inside a gate; T: enter and leave, or close and open.
template <typename Gate>
class Inside {
 public:
  explicit Inside(Gate& gate) : gate_(gate) { gate_.enter(); }
  ~Inside() { gate_.leave(); }
  Inside(const Inside&) = delete;

 private:
  Gate& gate_;
};
template <typename Gate>
class ClosedGate {
 public:
  explicit ClosedGate(Gate& gate) : gate_(gate) { gate_.close(); }
  ~ClosedGate() { gate_.open(); }
  ClosedGate(const ClosedGate&) = delete;

 private:
  Gate& gate_;
};

}  // namespace

SparseTable::SparseTable(TableSettings settings, ShardRange shards, Clock clock)
    : settings_(std::move(settings)),
      range_(shards),
      clock_(std::move(clock)),
      rule_(make_table_rule(settings_.rule)),
      initializer_(settings_.initializer, settings_.seed, settings_.name),
      index_arena_(RowIndex::kBlockBytes, settings_.huge_pages),
      row_arena_(settings_.layout().chunk_bytes(), settings_.huge_pages),
      cold_(settings_.storage == "memory"
                ? nullptr
                : cold_stores()
                      .get(settings_.storage)
                      .open(folder_of(settings_, shards), settings_.storage_memory())),
      parts_(parts_of(settings_, *rule_, initializer_, index_arena_, row_arena_, cold_.get(),
                      range_.count())) {
  for (int shard = range_.first; shard < range_.end; ++shard) {
    shards_.push_back(std::make_unique<LockedShard>(parts_, shard));
  }
  if (cold_) workers_ = std::make_unique<ShardWorkers>(kReaders);
}

SparseTable::~SparseTable() = default;

SparseTable::LockedShard& SparseTable::locked(int shard) const {
  FLEET_CHECK(range_.contains(shard),
              "an id of the table '" + settings_.name + "' belongs to another server");
  return *shards_[static_cast<size_t>(shard - range_.first)];
}

void SparseTable::check_sizes(size_t ids, size_t values) const {
  FLEET_CHECK(values == ids * static_cast<size_t>(settings_.dim) && ids <= UINT32_MAX,
              "values of the table '" + settings_.name + "' do not fit its ids");
}

void SparseTable::sort_by_shard(std::span<const uint64_t> ids, Batch* batch) const {
  const auto shards = static_cast<size_t>(range_.count());
  batch->mixed.resize(ids.size());
  batch->order.resize(ids.size());
  batch->ends.assign(shards + 1, 0);
  bool foreign = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t mixed = mix_id(ids[i]);
    batch->mixed[i] = mixed;
    const auto shard = static_cast<size_t>(shard_of_mixed(mixed) - range_.first);
    foreign |= shard >= shards;
    ++batch->ends[std::min(shard, shards)];
  }
  FLEET_CHECK(!foreign, "an id of the table '" + settings_.name + "' belongs to another server");
  uint32_t before = 0;
  for (uint32_t& end : batch->ends) before += std::exchange(end, before);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto shard = static_cast<size_t>(shard_of_mixed(batch->mixed[i]) - range_.first);
    batch->order[batch->ends[shard]++] = static_cast<uint32_t>(i);
  }
}

// visit(TableShard&, positions, scratch), with the shard's lock.
template <typename Visit>
int64_t SparseTable::for_shards(const Batch& batch, BatchScratch& scratch,
                                const Visit& visit) const {
  if (workers_) return for_cold_shards(batch, visit);
  const std::span<const uint32_t> order = batch.order;
  size_t begin = 0, loaded = 0;
  int64_t sum = 0;
  for (size_t s = 0; begin < order.size(); ++s) {
    const size_t end = batch.ends[s];
    if (end == begin) continue;
    loaded = std::max(loaded, begin);
    const size_t until = std::min({order.size(), end + kAhead, begin + 3 * kAhead});
    for (; loaded < until; ++loaded) {
      const uint64_t mixed = batch.mixed[order[loaded]];
      shards_[static_cast<size_t>(shard_of_mixed(mixed) - range_.first)]->prefetch(mixed);
    }
    LockedShard& locked = *shards_[s];
    const MutexLock lock(locked.mutex);
    sum += visit(locked.shard, order.subspan(begin, end - begin), scratch);
    begin = end;
  }
  return sum;
}

template <typename Visit>
int64_t SparseTable::for_cold_shards(const Batch& batch, const Visit& visit) const {
  std::atomic<int64_t> sum{0};
  workers_->run(shards_.size(), [&](size_t s) {
    const size_t begin = s == 0 ? 0 : batch.ends[s - 1], end = batch.ends[s];
    if (end == begin) return;
    LockedShard& locked = *shards_[s];
    const MutexLock lock(locked.mutex);
    sum += visit(locked.shard, std::span(batch.order).subspan(begin, end - begin),
                 Batch::of_thread().scratch);
  });
  return sum;
}

void SparseTable::pull(std::span<const uint64_t> ids, std::span<float> rows,
                       std::span<const uint32_t> occurrences) {
  check_sizes(ids.size(), rows.size());
  FLEET_CHECK(occurrences.empty() || occurrences.size() == ids.size(),
              "occurrences do not fit their ids");
  Batch& batch = Batch::of_thread();
  sort_by_shard(ids, &batch);
  const PullBatch pull{.ids = ids.data(),
                       .mixed = batch.mixed.data(),
                       .occurrences = occurrences.empty() ? nullptr : occurrences.data(),
                       .rows = rows.data(),
                       .now = now()};
  const Inside inside(gate_);
  for_shards(batch, batch.scratch, [&](TableShard& shard, auto at, BatchScratch& scratch) {
    shard.pull(pull, at, scratch);
    return 0;
  });
}

MissingRows SparseTable::lookup(std::span<const uint64_t> ids, std::span<float> rows) const {
  check_sizes(ids.size(), rows.size());
  Batch& batch = Batch::of_thread();
  sort_by_shard(ids, &batch);
  const PullBatch pull{.ids = ids.data(),
                       .mixed = batch.mixed.data(),
                       .occurrences = nullptr,
                       .rows = rows.data(),
                       .now = 0};
  std::atomic<int64_t> initial{0}, not_admitted{0};
  for_shards(batch, batch.scratch, [&](TableShard& shard, auto at, BatchScratch&) {
    const MissingRows missing = shard.lookup(pull, at);
    initial += missing.initial;
    not_admitted += missing.not_admitted;
    return 0;
  });
  const MissingRows missing{.initial = initial, .not_admitted = not_admitted};
  missing_lookups_ += missing.all();
  return missing;
}

void SparseTable::push(std::span<const uint64_t> ids, std::span<const float> gradients,
                       const TablePush& options) {
  check_sizes(ids.size(), gradients.size());
  for (const auto& list : {options.shows, options.clicks}) {
    FLEET_CHECK(list.empty() || list.size() == ids.size(), "shows do not fit their ids");
  }
  Batch& batch = Batch::of_thread();
  sort_by_shard(ids, &batch);
  const double rate = options.learning_rate.value_or(rule_->learning_rate());
  const PushBatch push{.ids = ids.data(),
                       .mixed = batch.mixed.data(),
                       .gradients = gradients.data(),
                       .shows = options.shows.empty() ? nullptr : options.shows.data(),
                       .clicks = options.clicks.empty() ? nullptr : options.clicks.data(),
                       .learning_rate = static_cast<float>(rate),
                       .means = options.means,
                       .differences = options.differences,
                       .now = now()};
  const Inside inside(gate_);
  ignored_pushes_ +=
      for_shards(batch, batch.scratch, [&](TableShard& shard, auto at, BatchScratch& scratch) {
        return shard.push(push, at, scratch);
      });
}

ShrinkResult SparseTable::shrink(std::optional<int64_t> max_age) {
  const ClosedGate closed(gate_);
  if (cutting_) {
    throw Error(ErrorCode::kUsage, "a snapshot of the table is being written",
                "tables." + settings_.name, "shrink it when that has ended");
  }
  ShrinkResult all;
  ++shrinks_;
  const uint32_t time = now();
  for (const auto& locked : shards_) {
    const MutexLock lock(locked->mutex);
    const ShrinkResult one = locked->shard.shrink(time, max_age.value_or(settings_.max_age));
    all.by_age += one.by_age;
    all.by_score += one.by_score;
    all.by_ttl += one.by_ttl;
    all.waiting += one.waiting;
  }
  return all;
}

TableCounts SparseTable::counts() const {
  TableCounts counts{.bytes = static_cast<int64_t>(index_arena_.touched() + row_arena_.touched() +
                                                   shards_.size() * sizeof(LockedShard)),
                     .missing_lookups = missing_lookups_,
                     .ignored_pushes = ignored_pushes_};
  for (const auto& locked : shards_) {
    const MutexLock lock(locked->mutex);
    counts.rows += locked->shard.rows();
    counts.waiting += locked->shard.waiting();
    counts.bytes += locked->shard.preserved();
  }
  if (cold_) counts.bytes += cold_->memory();
  return counts;
}

void SparseTable::begin_cut() {
  const ClosedGate closed(gate_);
  if (cutting_.exchange(true)) {
    throw Error(ErrorCode::kUsage, "a snapshot of the table is being written already",
                "tables." + settings_.name, "begin the next when that has ended");
  }
  for (const auto& locked : shards_) {
    const MutexLock lock(locked->mutex);
    locked->shard.begin_cut();
  }
  if (cold_) cold_->begin_cut();
  ++version_;
}

ShardContent SparseTable::take_cut(int shard, int64_t since) {
  LockedShard& one = locked(shard);
  const MutexLock lock(one.mutex);
  return one.shard.take_cut(since);
}

void SparseTable::end_cut() {
  for (const auto& locked : shards_) {
    const MutexLock lock(locked->mutex);
    locked->shard.drop_cut();
  }
  if (cold_) cold_->end_cut();
  cutting_ = false;
}

void SparseTable::begin_restore(int64_t version, int64_t shrinks) {
  version_ = version + 1;
  shrinks_ = shrinks;
  for (const auto& locked : shards_) {
    const MutexLock lock(locked->mutex);
    locked->shard.begin_restore(version_, shrinks_);
  }
}

void SparseTable::restore(const ShardContent& content) {
  LockedShard& one = locked(content.shard);
  const MutexLock lock(one.mutex);
  one.shard.restore(content);
}

}  // namespace fleet::ps
