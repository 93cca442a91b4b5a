// Rows outside of memory, for tables larger than it. Each kind registers itself in one file:
//   FLEET_COLD_STORE(rocksdb) { def.open = ...; }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/registry.h"

namespace fleet::ps {

// Records (row_record.h) by shard and id; shards up to UINT16_MAX - 1. Any thread; calls for one
// shard do not overlap. Errors: kIo naming the folder.
class ColdStore {
 public:
  using Visit = std::function<void(std::span<const std::byte> record)>;

  virtual ~ColdStore() = default;
  // Calls found(i, record) for each ids[i] that exists.
  virtual void read(
      int shard, std::span<const uint64_t> ids,
      const std::function<void(size_t i, std::span<const std::byte> record)>& found) = 0;
  // Adds or replaces records of `bytes` each, faster if they ascend by id.
  virtual void write(int shard, std::span<const std::byte> records, size_t bytes) = 0;
  virtual void erase(int shard, std::span<const uint64_t> ids) = 0;
  // Ascending by id. at_cut: as it was at begin_cut().
  virtual void for_each(int shard, bool at_cut, const Visit& visit) = 0;
  virtual void begin_cut() = 0;
  virtual void end_cut() = 0;
  // Bytes of memory that it holds: at most those of open().
  virtual int64_t memory() const = 0;
};

struct ColdStoreDef {
  // Opens an empty store in the folder, whose earlier content is removed. memory: bytes for its
  // caches, indexes and buffers together.
  std::function<std::unique_ptr<ColdStore>(const std::string& folder, int64_t memory)> open;
};
Registry<ColdStoreDef>& cold_stores();
// Throws kUnsupported naming `where` if this build has no store of this kind.
void check_cold_store(const std::string& kind, const std::string& where);

#define FLEET_COLD_STORE(name)                                      \
  FLEET_REGISTER(cold_store_##name, ::fleet::ps::ColdStoreDef& def, \
                 ::fleet::ps::cold_stores().define, #name)

}  // namespace fleet::ps
