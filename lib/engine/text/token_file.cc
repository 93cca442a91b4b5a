#include "text/token_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/sync.h"
#include "base/text.h"

namespace fleet::text {
namespace {

static_assert(std::endian::native == std::endian::little);

struct LlmCVersion {
  int32_t magic, version;
  TokenWidth width;
};
constexpr LlmCVersion kVersions[] = {{20240520, 1, TokenWidth::kUint16},
                                     {20240801, 7, TokenWidth::kUint32}};
using LlmCHeader = std::array<int32_t, 256>;
constexpr size_t kFlushBytes = 1 << 20;

int bits_of(TokenWidth width) { return 8 * static_cast<int>(width); }

[[noreturn]] void refuse_token_file(const std::string& path, const std::string& what,
                                    const std::string& next) {
  throw Error(ErrorCode::kUsage, what, path, next);
}

// Writes the ids with this type, at `to`.
template <typename Stored>
void store_ids(std::span<const uint32_t> ids, char* to) {
  for (const uint32_t id : ids) {
    const auto stored = static_cast<Stored>(id);
    std::memcpy(to, &stored, sizeof stored);
    to += sizeof stored;
  }
}

void write_all(const UniqueFd& file, const char* from, size_t bytes, uint64_t at,
               const std::string& path) {
  while (bytes > 0) {
    const ssize_t done = ::pwrite(file.get(), from, bytes, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw_errno("cannot write the tokens", path);
    from += done;
    at += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

}  // namespace

TokenFormat token_format(const std::string& name) {
  const std::vector<std::string> names = {"nanogpt", "llm.c"};
  if (name == names[0]) return TokenFormat::kNanoGpt;
  if (name == names[1]) return TokenFormat::kLlmC;
  throw Error(ErrorCode::kUsage, "unknown format of token files '" + name + "'", {},
              suggestion(name, names));
}

TokenWidth token_width_for(size_t vocabulary_size) {
  return vocabulary_size <= size_t{1} << 16 ? TokenWidth::kUint16 : TokenWidth::kUint32;
}

TokenFile::TokenFile(const std::string& path, std::optional<TokenWidth> width) : path_(path) {
  const RegularFile file = open_regular_file(path);
  bytes_ = static_cast<size_t>(file.size);
  if (bytes_ > 0) {
    void* map = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.fd.get(), 0);
    if (map == MAP_FAILED) throw_errno("cannot map the file into memory", path);
    map_ = static_cast<const char*>(map);
  }
  try {
    read_header(width);
  } catch (...) {
    unmap();
    throw;
  }
}

void TokenFile::read_header(std::optional<TokenWidth> wanted) {
  LlmCHeader header = {};
  if (bytes_ >= sizeof header) std::memcpy(header.data(), map_, sizeof header);
  const auto known = std::find_if(std::begin(kVersions), std::end(kVersions),
                                  [&](const LlmCVersion& one) { return one.magic == header[0]; });
  if (known == std::end(kVersions)) {
    width_ = wanted.value_or(TokenWidth::kUint16);
    const auto width = static_cast<size_t>(width_);
    if (bytes_ % width != 0) {
      refuse_token_file(path_,
                        std::to_string(bytes_) + " bytes are not a whole number of uint" +
                            std::to_string(bits_of(width_)) + " tokens",
                        "write the file again: it is cut off, or not a file of tokens");
    }
    size_ = static_cast<int64_t>(bytes_ / width);
    return;
  }
  const char* const again = "write the file again, with this release or llm.c's scripts";
  if (header[1] != known->version) {
    refuse_token_file(path_,
                      "version " + std::to_string(header[1]) +
                          " of llm.c's token files; known: " + std::to_string(known->version),
                      again);
  }
  const auto width = static_cast<size_t>(known->width);
  const size_t rest = bytes_ - sizeof header;
  if (header[2] < 0 || rest != width * static_cast<size_t>(header[2])) {
    refuse_token_file(path_,
                      "its header counts " + std::to_string(header[2]) + " tokens of " +
                          std::to_string(width) + " bytes, but " + std::to_string(rest) +
                          " bytes follow",
                      again);
  }
  if (wanted && *wanted != known->width) {
    refuse_token_file(path_,
                      "its header says uint" + std::to_string(bits_of(known->width)) +
                          ", not uint" + std::to_string(bits_of(*wanted)),
                      "leave out the type: the header decides");
  }
  width_ = known->width;
  format_ = TokenFormat::kLlmC;
  offset_ = sizeof header;
  size_ = header[2];
}

void TokenFile::unmap() {
  if (map_) ::munmap(const_cast<char*>(map_), bytes_);
  map_ = nullptr;
}

TokenFile::~TokenFile() { unmap(); }

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      map_(std::exchange(other.map_, nullptr)),
      bytes_(other.bytes_),
      offset_(other.offset_),
      size_(std::exchange(other.size_, 0)),
      width_(other.width_),
      format_(other.format_) {}

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  path_ = std::move(other.path_);
  map_ = std::exchange(other.map_, nullptr);
  bytes_ = other.bytes_;
  offset_ = other.offset_;
  size_ = std::exchange(other.size_, 0);
  width_ = other.width_;
  format_ = other.format_;
  return *this;
}

void TokenFile::check_range(int64_t begin, int64_t count) const {
  FLEET_CHECK(begin >= 0 && count >= 0 && begin <= size_ && count <= size_ - begin,
              path_ + ": tokens " + std::to_string(begin) + " to " + std::to_string(begin + count) +
                  " of " + std::to_string(size_));
}

uint32_t TokenFile::operator[](int64_t index) const {
  uint32_t id = 0;
  copy(index, std::span(&id, 1));
  return id;
}

uint32_t TokenFile::largest_id() const {
  uint32_t largest = 0;
  std::array<uint32_t, 4096> ids;
  for (int64_t at = 0; at < size_;) {
    const auto count = static_cast<size_t>(std::min<int64_t>(ids.size(), size_ - at));
    copy(at, std::span(ids).first(count));
    largest = std::max(largest, *std::max_element(ids.begin(), ids.begin() + count));
    at += static_cast<int64_t>(count);
  }
  return largest;
}

TokenWriter::TokenWriter(const std::string& path, TokenFormat format, TokenWidth width)
    : path_(path), partial_(path + ".partial"), format_(format), width_(width) {
  check_replaceable(path);
  file_ = UniqueFd(::open(partial_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666));
  if (!file_) throw_errno("cannot create the file", partial_);
  if (format == TokenFormat::kLlmC) at_ = sizeof(LlmCHeader);
}

TokenWriter::~TokenWriter() {
  if (file_) ::unlink(partial_.c_str());
}

void TokenWriter::add(std::span<const uint32_t> ids) {
  if (width_ == TokenWidth::kUint16) {
    const auto wide = std::find_if(ids.begin(), ids.end(), [](uint32_t id) { return id > 65535; });
    if (wide != ids.end()) {
      refuse_token_file(path_, "token " + std::to_string(*wide) + " does not fit into uint16",
                        "write uint32");
    }
  }
  size_ += static_cast<int64_t>(ids.size());
  if (format_ == TokenFormat::kLlmC && size_ > INT32_MAX) {
    refuse_token_file(path_, "a file of llm.c holds at most 2147483647 tokens",
                      "write several files, or the format nanogpt");
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + ids.size() * static_cast<size_t>(width_));
  if (width_ == TokenWidth::kUint16) {
    store_ids<uint16_t>(ids, buffer_.data() + before);
  } else {
    store_ids<uint32_t>(ids, buffer_.data() + before);
  }
  if (buffer_.size() >= kFlushBytes) flush();
}

void TokenWriter::flush() {
  write_all(file_, buffer_.data(), buffer_.size(), at_, partial_);
  at_ += buffer_.size();
  buffer_.clear();
}

void TokenWriter::finish() {
  flush();
  if (format_ == TokenFormat::kLlmC) {
    LlmCHeader header = {};
    const LlmCVersion& version = kVersions[width_ == TokenWidth::kUint16 ? 0 : 1];
    header[0] = version.magic;
    header[1] = version.version;
    header[2] = static_cast<int32_t>(size_);
    write_all(file_, reinterpret_cast<const char*>(header.data()), sizeof header, 0, partial_);
  }
  sync_file(file_.get(), partial_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) throw_errno("cannot rename", partial_);
  file_.reset();
}

}  // namespace fleet::text
