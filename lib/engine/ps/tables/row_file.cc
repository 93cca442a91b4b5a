#include "ps/tables/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/owned_file.h"
#include "base/regular_file.h"
#include "ps/tables/virtual_shards.h"
#include "train/safetensors.h"

namespace fleet::ps {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[8] = {'F', 'L', 'R', 'O', 'W', 'S', '\n', '\1'};

struct FileHead {
  char magic[8];
  uint32_t first, end, floats, unused;
  int64_t version, since;
  uint8_t zeros[20];
  uint32_t crc;  // CRC-32C: all bytes before it
};
static_assert(sizeof(FileHead) == 64);

std::string_view view(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

uint32_t content_crc(const ShardContent& content) {
  const uint32_t records = crc32c(view(content.records.data(), content.records.size()));
  return crc32c(view(content.waiting.data(), content.waiting.size() * sizeof(WaitingRecord)),
                records);
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw DamagedFile(what, path, "load an older snapshot, or copy the file again");
}

}  // namespace

RowFileWriter::RowFileWriter(const std::string& path, const RowFileHead& head)
    : path_(path), aside_(path + ".part." + std::to_string(::getpid())), head_(head) {
  file_ =
      UniqueFd(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file_) throw_errno("cannot create the file", path);
  FileHead start = {};
  std::memcpy(start.magic, kMagic, sizeof kMagic);
  start.first = head.first;
  start.end = head.end;
  start.floats = head.floats;
  start.version = head.version;
  start.since = head.since;
  start.crc = crc32c(view(&start, offsetof(FileHead, crc)));
  write(&start, sizeof start);
}

RowFileWriter::~RowFileWriter() {
  if (file_) ::unlink(aside_.c_str());
}

void RowFileWriter::write(const void* data, size_t bytes) {
  write_all(file_.get(), view(data, bytes), path_);
  at_ += bytes;
}

void RowFileWriter::add(const ShardContent& content) {
  const size_t record = sizeof(RecordHead) + head_.floats * sizeof(float);
  const RowFileReader::Entry entry{.offset = at_,
                                   .rows = content.records.size() / record,
                                   .waiting = static_cast<uint32_t>(content.waiting.size()),
                                   .full = content.full,
                                   .crc = content_crc(content),
                                   .shard = static_cast<uint32_t>(content.shard)};
  FLEET_CHECK(entry.shard == head_.first + directory_.size() / sizeof entry,
              "shards are written in another order");
  write(content.records.data(), content.records.size());
  write(content.waiting.data(), content.waiting.size() * sizeof(WaitingRecord));
  const auto* bytes = reinterpret_cast<const std::byte*>(&entry);
  directory_.insert(directory_.end(), bytes, bytes + sizeof entry);
}

void RowFileWriter::finish() {
  crc_ = crc32c(view(directory_.data(), directory_.size()));
  write(directory_.data(), directory_.size());
  write(&crc_, sizeof crc_);
  if (::fsync(file_.get()) != 0) throw_errno("cannot write the file to the disk", path_);
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    throw_errno("cannot rename the new file into place", path_);
  }
  file_.reset();
}

RowFileReader::RowFileReader(const std::string& path, int64_t bytes) : path_(path) {
  RegularFile file = open_regular_file(path);
  if (file.size != bytes) {
    damaged(path, "it has " + std::to_string(file.size) + " bytes instead of " +
                      std::to_string(bytes) + ", so it was not written completely");
  }
  file_ = std::move(file.fd);
  FileHead start;
  if (read_at(file_, &start, sizeof start, 0, path) != sizeof start ||
      std::memcmp(start.magic, kMagic, sizeof kMagic) != 0) {
    damaged(path, "it is not a file of rows");
  }
  if (start.crc != crc32c(view(&start, offsetof(FileHead, crc)))) {
    damaged(path, "its header does not match its checksum");
  }
  head_ = {.first = start.first,
           .end = start.end,
           .floats = start.floats,
           .version = start.version,
           .since = start.since};
  if (head_.first >= head_.end || head_.end > kVirtualShards) damaged(path, "its header is wrong");
  read_directory(static_cast<uint64_t>(bytes));
}

void RowFileReader::read_directory(uint64_t bytes) {
  entries_.resize(head_.end - head_.first);
  const size_t size = entries_.size() * sizeof(Entry);
  uint32_t crc = 0;
  if (bytes < sizeof(FileHead) + size + sizeof crc ||
      read_at(file_, entries_.data(), size, bytes - size - sizeof crc, path_) != size ||
      read_at(file_, &crc, sizeof crc, bytes - sizeof crc, path_) != sizeof crc) {
    damaged(path_, "it is too short for its directory");
  }
  if (crc != crc32c(view(entries_.data(), size))) {
    damaged(path_, "its directory does not match its checksum");
  }
}

const RowFileReader::Entry& RowFileReader::entry(int shard) const {
  const auto at = static_cast<uint32_t>(shard) - head_.first;
  FLEET_CHECK(at < entries_.size(), path_ + " does not have this shard");
  return entries_[at];
}

int64_t RowFileReader::rows(int shard) const { return static_cast<int64_t>(entry(shard).rows); }
int64_t RowFileReader::waiting(int shard) const { return entry(shard).waiting; }

ShardContent RowFileReader::read(int shard) const {
  const Entry& entry = this->entry(shard);
  ShardContent content{.shard = shard, .full = entry.full != 0};
  content.records.resize(entry.rows * (sizeof(RecordHead) + head_.floats * sizeof(float)));
  content.waiting.resize(entry.waiting);
  const size_t waiting = content.waiting.size() * sizeof(WaitingRecord);
  if (read_at(file_, content.records.data(), content.records.size(), entry.offset, path_) !=
          content.records.size() ||
      read_at(file_, content.waiting.data(), waiting, entry.offset + content.records.size(),
              path_) != waiting ||
      content_crc(content) != entry.crc) {
    damaged(path_, "shard " + std::to_string(shard) + " does not match its checksum");
  }
  return content;
}

}  // namespace fleet::ps
