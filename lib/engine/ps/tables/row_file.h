// A file of the rows of some virtual shards.
//
// Little-endian: a header of 64 bytes; for each shard its records, then its waiting ids
// (row_record.h); a directory with the place, the size and the CRC-32C of each shard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "ps/tables/row_record.h"

namespace fleet::ps {

struct RowFileHead {
  uint32_t first = 0, end = 0;  // shards
  uint32_t floats = 0;          // in a record
  int64_t version = 0, since = 0;
};

// Writes a temporary file; finish() syncs and renames it. Without finish() nothing remains. Not
// thread-safe. kIo naming the path.
class RowFileWriter {
 public:
  RowFileWriter(const std::string& path, const RowFileHead& head);
  ~RowFileWriter();
  RowFileWriter(const RowFileWriter&) = delete;
  RowFileWriter& operator=(const RowFileWriter&) = delete;

  // The shards in ascending order, each once.
  void add(const ShardContent& content);
  void finish();
  int64_t bytes() const { return static_cast<int64_t>(at_); }
  // After finish(): the checksum of the directory, which has those of all shards.
  uint32_t crc() const { return crc_; }

 private:
  void write(const void* data, size_t bytes);

  const std::string path_, aside_;
  const RowFileHead head_;
  UniqueFd file_;
  uint64_t at_ = 0;
  uint32_t crc_ = 0;
  std::vector<std::byte> directory_;
};

// Any thread. DamagedFile (train/safetensors.h) naming the path, and the shard if only one is
// damaged. kNotFound or kIo.
class RowFileReader {
 public:
  // bytes: the size that the file must have.
  RowFileReader(const std::string& path, int64_t bytes);
  const RowFileHead& head() const { return head_; }
  int64_t rows(int shard) const;
  int64_t waiting(int shard) const;
  ShardContent read(int shard) const;

 private:
  struct Entry {
    uint64_t offset, rows;
    uint32_t waiting, full, crc, shard;
  };
  static_assert(sizeof(Entry) == 32);
  friend class RowFileWriter;
  const Entry& entry(int shard) const;
  void read_directory(uint64_t bytes);

  const std::string path_;
  UniqueFd file_;
  RowFileHead head_;
  std::vector<Entry> entries_;
};

}  // namespace fleet::ps
