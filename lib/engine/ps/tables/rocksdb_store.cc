// storage rocksdb: keys are the shard and the id, big-endian, so that they ascend; values are
// records. The files are working space: snapshots are what survives, hence no write-ahead log.
//
// One cache bounds the memory: memtables, indexes, filters and the state of open files are charged
// to it, and blocks of rows have what these leave. Indexes and filters are split into parts, so
// that a database of any size needs only those in use.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "ps/tables/cold_store.h"
#include "ps/tables/row_record.h"

namespace fleet::ps {
namespace {

constexpr size_t kShardBytes = 2, kKeyBytes = kShardBytes + sizeof(uint64_t);
constexpr int kBloomBits = 10;
constexpr size_t kMemtables = 3;  // one that is written, and two that wait for the disk
// Of the cache: a large entry must not fill its part of it.
constexpr size_t kLeastPart = size_t{4} << 20;
// Bytes of a file that wait for the disk: a control group cannot drop pages that are not written.
constexpr uint64_t kUnwritten = uint64_t{1} << 20;

std::string key_of(int shard, uint64_t id) {
  std::string key(kKeyBytes, '\0');
  key[0] = static_cast<char>(shard >> 8);
  key[1] = static_cast<char>(shard);
  for (size_t i = 0; i < sizeof id; ++i)
    key[kShardBytes + i] = static_cast<char>(id >> (56 - 8 * i));
  return key;
}

// Not strict: a read must not fail because other threads hold all entries.
std::shared_ptr<rocksdb::Cache> make_cache(size_t memory) {
  const int bits = std::bit_width(std::max<size_t>(1, memory / kLeastPart)) - 1;
  return rocksdb::NewLRUCache(memory, std::min(bits, 6), /*strict_capacity_limit=*/false);
}

rocksdb::BlockBasedTableOptions table_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBits, false));
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.optimize_filters_for_memory = true;
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  const rocksdb::CacheEntryRoleOptions charged{
      .charged = rocksdb::CacheEntryRoleOptions::Decision::kEnabled};
  for (const auto role :
       {rocksdb::CacheEntryRole::kBlockBasedTableReader, rocksdb::CacheEntryRole::kFileMetadata,
        rocksdb::CacheEntryRole::kFilterConstruction}) {
    table.cache_usage_options.options_overrides[role] = charged;
  }
  return table;
}

rocksdb::Options database_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  const size_t buffers = cache->GetCapacity() / 4;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_manager = std::make_shared<rocksdb::WriteBufferManager>(buffers, cache);
  options.write_buffer_size = buffers / kMemtables;
  options.max_write_buffer_number = kMemtables;
  // Records of a shard are written in ascending order.
  options.memtable_insert_with_hint_prefix_extractor.reset(
      rocksdb::NewFixedPrefixTransform(kShardBytes));
  // Most ids of a batch that is pulled are not in a memtable.
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.02;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.compression = rocksdb::kNoCompression;  // floats do not compress
  options.bytes_per_sync = kUnwritten;
  options.strict_bytes_per_sync = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log_level = rocksdb::ERROR_LEVEL;
  options.keep_log_file_num = 1;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(cache)));
  return options;
}

void make_storage(const std::string& folder) {
  try {
    make_directories(folder);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.failure(), folder,
                "set the table's storage.path to a writable folder");
  }
}

class RocksdbStore : public ColdStore {
 public:
  RocksdbStore(const std::string& folder, int64_t memory)
      : folder_(folder), cache_(make_cache(static_cast<size_t>(memory))) {
    make_storage(folder);
    const rocksdb::Options options = database_options(cache_);
    // Refuses a folder that another process has open.
    check(rocksdb::DestroyDB(folder, options), "cannot empty the database");
    rocksdb::DB* database = nullptr;
    check(rocksdb::DB::Open(options, folder, &database), "cannot open the database");
    database_.reset(database);
    write_.disableWAL = true;
  }
  ~RocksdbStore() override { end_cut(); }

  void read(int shard, std::span<const uint64_t> ids,
            const std::function<void(size_t, std::span<const std::byte>)>& found) override {
    for (size_t first = 0; first < ids.size(); first += kRead) {
      const size_t count = std::min(kRead, ids.size() - first);
      std::array<std::string, kRead> keys;
      std::array<rocksdb::Slice, kRead> slices;
      std::array<rocksdb::PinnableSlice, kRead> values;
      std::array<rocksdb::Status, kRead> all;
      for (size_t i = 0; i < count; ++i) slices[i] = keys[i] = key_of(shard, ids[first + i]);
      database_->MultiGet({}, database_->DefaultColumnFamily(), count, slices.data(), values.data(),
                          all.data());
      for (size_t i = 0; i < count; ++i) {
        if (all[i].IsNotFound()) continue;
        check(all[i], "cannot read a row");
        found(first + i, bytes_of(values[i]));
      }
    }
  }

  void write(int shard, std::span<const std::byte> records, size_t bytes) override {
    rocksdb::WriteBatch batch;
    for (size_t at = 0; at + bytes <= records.size(); at += bytes) {
      const auto* record = reinterpret_cast<const char*>(&records[at]);
      check(batch.Put(key_of(shard, record_head(&records[at]).id), rocksdb::Slice(record, bytes)),
            "cannot write rows");
    }
    check(database_->Write(write_, &batch), "cannot write rows");
  }

  void erase(int shard, std::span<const uint64_t> ids) override {
    rocksdb::WriteBatch batch;
    for (const uint64_t id : ids) check(batch.Delete(key_of(shard, id)), "cannot remove rows");
    check(database_->Write(write_, &batch), "cannot remove rows");
  }

  void for_each(int shard, bool at_cut, const Visit& visit) override {
    rocksdb::ReadOptions options;
    options.snapshot = at_cut ? cut_.load() : nullptr;
    options.fill_cache = false;
    const std::string end = key_of(shard + 1, 0);
    const rocksdb::Slice bound(end);
    options.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(options));
    for (at->Seek(key_of(shard, 0)); at->Valid(); at->Next()) visit(bytes_of(at->value()));
    check(at->status(), "cannot read rows");
  }

  void begin_cut() override { cut_ = database_->GetSnapshot(); }
  void end_cut() override {
    if (const rocksdb::Snapshot* cut = cut_.exchange(nullptr)) database_->ReleaseSnapshot(cut);
  }
  int64_t memory() const override { return static_cast<int64_t>(cache_->GetUsage()); }

 private:
  static constexpr size_t kRead = 64;  // rows whose blocks are held at the same time

  static std::span<const std::byte> bytes_of(const rocksdb::Slice& slice) {
    return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
  }
  void check(const rocksdb::Status& status, const char* what) const {
    if (status.ok()) return;
    throw Error(ErrorCode::kIo, std::string(what) + ": " + status.ToString(), folder_,
                "check the space and the rights of the folder, and that no other job uses it");
  }

  const std::string folder_;
  const std::shared_ptr<rocksdb::Cache> cache_;
  std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions write_;
  std::atomic<const rocksdb::Snapshot*> cut_{nullptr};
};

}  // namespace

FLEET_COLD_STORE(rocksdb) {
  def.open = [](const std::string& folder, int64_t memory) {
    return std::make_unique<RocksdbStore>(folder, memory);
  };
}

}  // namespace fleet::ps
