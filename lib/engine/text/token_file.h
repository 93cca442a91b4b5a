// Files of token ids (`.bin`), as nanoGPT and llm.c write and read them. Little-endian.
//
//   nanogpt: ids only, uint16 or uint32
//   llm.c:   256 int32, then the ids. Magic 20240520, version 1: uint16 (GPT-2); magic 20240801,
//            version 7: uint32 (Llama-3). The third number counts the ids; the others are 0.
// Source: nanoGPT data/openwebtext/prepare.py, llm.c dev/data/data_common.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet::text {

enum class TokenFormat { kNanoGpt, kLlmC };
// "nanogpt", "llm.c". kUsage for another name.
TokenFormat token_format(const std::string& name);

enum class TokenWidth : uint8_t { kUint16 = 2, kUint32 = 4 };
// The narrower type that holds all ids below this number.
TokenWidth token_width_for(size_t vocabulary_size);

// A file of ids, mapped into memory: it costs no time to open, and processes share its pages. A
// file that another program shortens in the meantime ends this process (SIGBUS). Immutable:
// thread-safe.
class TokenFile {
 public:
  // width: type of the ids in a file without a header; default uint16. A header is recognized, and
  // gives the width itself. kUsage naming the path: a size that is not a multiple of the width, a
  // header whose count does not fit the file or whose version is unknown, a width that is not the
  // header's.
  explicit TokenFile(const std::string& path, std::optional<TokenWidth> width = {});
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;

  int64_t size() const { return size_; }  // ids
  TokenWidth width() const { return width_; }
  TokenFormat format() const { return format_; }
  const std::string& path() const { return path_; }

  uint32_t operator[](int64_t index) const;
  // Ids [begin, begin + to.size()), which must be in the file (else kInternal).
  template <typename Int>
  void copy(int64_t begin, std::span<Int> to) const {
    check_range(begin, static_cast<int64_t>(to.size()));
    if (width_ == TokenWidth::kUint16) {
      copy_from(as<uint16_t>() + begin, to);
    } else {
      copy_from(as<uint32_t>() + begin, to);
    }
  }
  // 0 for an empty file. Reads all of it.
  uint32_t largest_id() const;

 private:
  template <typename Stored>
  const Stored* as() const {
    return reinterpret_cast<const Stored*>(map_ + offset_);
  }
  template <typename Stored, typename Int>
  static void copy_from(const Stored* from, std::span<Int> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<Int>(from[i]);
  }
  void check_range(int64_t begin, int64_t count) const;
  void read_header(std::optional<TokenWidth> wanted);
  void unmap();

  std::string path_;
  const char* map_ = nullptr;  // the whole file; nullptr if it is empty
  size_t bytes_ = 0, offset_ = 0;
  int64_t size_ = 0;
  TokenWidth width_ = TokenWidth::kUint16;
  TokenFormat format_ = TokenFormat::kNanoGpt;
};

// Writes next to the path and renames at the end: no unfinished file appears under its name. Not
// thread-safe.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, TokenFormat format, TokenWidth width);
  ~TokenWriter();  // without finish(): removes what it wrote
  TokenWriter(const TokenWriter&) = delete;

  // kUsage naming the path for an id that the width cannot hold, and for more ids than a header of
  // llm.c can count (2^31 - 1). kIo.
  void add(std::span<const uint32_t> ids);
  int64_t size() const { return size_; }
  void finish();  // syncs and renames

 private:
  void flush();

  std::string path_, partial_;
  TokenFormat format_;
  TokenWidth width_;
  UniqueFd file_;
  std::vector<char> buffer_;
  uint64_t at_ = 0;
  int64_t size_ = 0;
};

}  // namespace fleet::text
