// storage rocksdb: keys are the shard and the id, big-endian, so that they ascend; values are
// records. The files are working space: snapshots are what survives, hence no write-ahead log.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "ps/tables/cold_store.h"
#include "ps/tables/row_record.h"

namespace fleet::ps {
namespace {

constexpr size_t kKeyBytes = 10, kBlockCache = size_t{64} << 20, kWriteBuffer = size_t{64} << 20;
constexpr int kBloomBits = 10;

std::string key_of(int shard, uint64_t id) {
  std::string key(kKeyBytes, '\0');
  key[0] = static_cast<char>(shard >> 8);
  key[1] = static_cast<char>(shard);
  for (size_t i = 0; i < sizeof id; ++i) key[2 + i] = static_cast<char>(id >> (56 - 8 * i));
  return key;
}

rocksdb::Options database_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = kWriteBuffer;
  options.compression = rocksdb::kNoCompression;  // floats do not compress
  options.info_log_level = rocksdb::ERROR_LEVEL;
  options.keep_log_file_num = 1;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCache);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBits, false));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class RocksdbStore : public ColdStore {
 public:
  explicit RocksdbStore(const std::string& folder) : folder_(folder) {
    make_directories(folder);
    const rocksdb::Options options = database_options();
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
    std::vector<std::string> keys;
    for (const uint64_t id : ids) keys.push_back(key_of(shard, id));
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    const std::vector<rocksdb::Status> all = database_->MultiGet({}, slices, &values);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].IsNotFound()) continue;
      check(all[i], "cannot read a row");
      found(i, bytes_of(values[i]));
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

 private:
  static std::span<const std::byte> bytes_of(const rocksdb::Slice& slice) {
    return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
  }
  void check(const rocksdb::Status& status, const char* what) const {
    if (status.ok()) return;
    throw Error(ErrorCode::kIo, std::string(what) + ": " + status.ToString(), folder_,
                "check the space and the rights of the folder, and that no other job uses it");
  }

  const std::string folder_;
  std::unique_ptr<rocksdb::DB> database_;
  rocksdb::WriteOptions write_;
  std::atomic<const rocksdb::Snapshot*> cut_{nullptr};
};

}  // namespace

FLEET_COLD_STORE(rocksdb) {
  def.open = [](const std::string& folder) { return std::make_unique<RocksdbStore>(folder); };
}

}  // namespace fleet::ps
