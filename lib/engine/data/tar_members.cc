#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "data/tar_files.h"

namespace fleet::data {
namespace {

constexpr uint64_t kBlock = 512;
// Names and pax headers are short; a larger one is damage.
constexpr uint64_t kLongestHeader = 1 << 20;
constexpr size_t kZerosAtOnce = size_t{64} << 10;  // a multiple of kBlock

// Offsets and lengths of POSIX.1-1988's header.
struct Field {
  size_t at, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kPrefix{345, 155};
constexpr size_t kType = 156, kMagicAt = 257;

using Block = std::array<char, kBlock>;

std::string text_of(const Block& block, Field field) {
  const std::string_view all(block.data() + field.at, field.length);
  return std::string(all.substr(0, all.find('\0')));
}

// Octal digits, or GNU's base 256 for large numbers.
bool parse_number(const Block& block, Field field, uint64_t* number) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block.data()) + field.at;
  *number = 0;
  if (bytes[0] & 0x80) {
    for (size_t i = field.length - 8; i < field.length; ++i) *number = *number << 8 | bytes[i];
    return true;
  }
  bool any = false;
  for (size_t i = 0; i < field.length; ++i) {
    if (bytes[i] == ' ' && !any) continue;
    if (bytes[i] < '0' || bytes[i] > '7') return any && (bytes[i] == 0 || bytes[i] == ' ');
    *number = *number * 8 + (bytes[i] - '0');
    any = true;
  }
  return any;
}

bool has_right_checksum(const Block& block) {
  uint64_t stored = 0, sum = 0;
  if (!parse_number(block, kChecksum, &stored)) return false;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.length;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum == stored;
}

// "12 path=name\n" lines: takes path and size.
void read_pax(std::string_view text, std::string* name, std::string* size) {
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    long long length = 0;
    if (blank == std::string_view::npos || !parse_int(text.substr(0, blank), &length) ||
        length <= static_cast<long long>(blank) + 1 ||
        length > static_cast<long long>(text.size())) {
      return;
    }
    const std::string_view entry = text.substr(blank + 1, length - blank - 2);
    if (entry.starts_with("path=")) *name = entry.substr(5);
    if (entry.starts_with("size=")) *size = entry.substr(5);
    text.remove_prefix(length);
  }
}

class TarReader {
 public:
  explicit TarReader(const std::string& path) : path_(path), file_(open_regular_file(path)) {}

  TarLayout run(const std::function<void(const TarMember&)>& body) {
    const auto end = static_cast<uint64_t>(file_.size);
    if (end == 0) throw Error(ErrorCode::kIo, "the tar file is empty", path_, "copy it again");
    bool after_zeros = true;  // a header begins an archive
    uint64_t at = 0;
    while (at < end) {
      Block block;
      read_block(at, &block);
      if (is_zero(block)) {
        if (extended_) ends_early("its last member");
        after_zeros = layout_.has_end_mark = true;
        at = end_of_zeros(at);
        continue;
      }
      if (after_zeros && layout_.archives > 0 && !is_header(block)) {
        layout_.ignored_at = at;
        layout_.ignored_bytes = end - at;
        return layout_;
      }
      if (kBlock > end - at && (layout_.archives > 0 || has_right_checksum(block))) {
        ends_early("a header");
      }
      check(block, at);
      if (after_zeros) ++layout_.archives;
      after_zeros = layout_.has_end_mark = false;
      at = read_member(block, at, body);
    }
    if (extended_) ends_early("its last member");
    return layout_;
  }

 private:
  // Returns where the next header begins.
  uint64_t read_member(const Block& block, uint64_t at,
                       const std::function<void(const TarMember&)>& body) {
    const auto end = static_cast<uint64_t>(file_.size);
    TarMember member{
        .name = text_of(block, kName), .offset = at + kBlock, .archive = layout_.archives - 1};
    if (!parse_number(block, kSize, &member.size)) damaged(at);
    const std::string prefix = text_of(block, kPrefix);
    const bool posix = std::memcmp(block.data() + kMagicAt, "ustar\0", 6) == 0;
    if (posix && !prefix.empty()) member.name = prefix + "/" + member.name;
    const char type = block[kType];
    const bool describes_next = type == 'L' || type == 'x' || type == 'K';
    if (type == 'L' || type == 'x') {
      const std::string text = content(member);
      if (type == 'L') long_name_ = text.substr(0, text.find('\0'));
      if (type == 'x') read_pax(text, &long_name_, &long_size_);
    } else if (!describes_next && type != 'g') {
      if (!long_name_.empty()) member.name = long_name_;
      long long size = 0;
      if (!long_size_.empty() && parse_int(long_size_, &size) && size >= 0) member.size = size;
      if (member.size > end - member.offset) ends_early(member.name);
      if (type == '0' || type == 0 || type == '7') body(member);
      long_name_.clear();
      long_size_.clear();
    }
    if (type != 'g') extended_ = describes_next;
    if (member.size > end - member.offset) ends_early(member.name);
    return member.offset + (member.size + kBlock - 1) / kBlock * kBlock;
  }

  static bool is_zero(const Block& block) {
    return std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
  }

  // A header whose checksum is wrong is still one: bytes of it have changed.
  static bool is_header(const Block& block) {
    return has_right_checksum(block) || std::memcmp(block.data() + kMagicAt, "ustar", 5) == 0;
  }

  // The first block from `at` on that holds something else; a file may be padded with much.
  uint64_t end_of_zeros(uint64_t at) const {
    const auto end = static_cast<uint64_t>(file_.size);
    std::vector<char> piece(kZerosAtOnce);
    while (at < end) {
      const uint64_t bytes = std::min<uint64_t>(piece.size(), end - at);
      read(at, piece.data(), bytes);
      const auto last = piece.begin() + static_cast<std::ptrdiff_t>(bytes);
      const auto other = std::find_if(piece.begin(), last, [](char c) { return c != 0; });
      if (other != last) {
        return at + static_cast<uint64_t>(other - piece.begin()) / kBlock * kBlock;
      }
      at += bytes;
    }
    return end;
  }

  // Pads a shorter last block with zeros.
  void read_block(uint64_t at, Block* block) const {
    block->fill(0);
    read(at, block->data(), std::min(kBlock, static_cast<uint64_t>(file_.size) - at));
  }

  void check(const Block& block, uint64_t at) const {
    if (has_right_checksum(block)) return;
    if (layout_.archives > 0) damaged(at);
    const bool gzip = block[0] == '\x1f' && block[1] == '\x8b';
    const bool zstd = std::memcmp(block.data(), "\x28\xb5\x2f\xfd", 4) == 0;
    throw Error(ErrorCode::kUsage, gzip || zstd ? "the tar file is compressed" : "no tar file",
                path_,
                gzip || zstd ? "unpack it (gunzip, unzstd): samples are read in any order"
                             : "list only tar files in shards");
  }

  std::string content(const TarMember& member) const {
    if (member.size > kLongestHeader) damaged(member.offset - kBlock);
    std::string text(member.size, '\0');
    read(member.offset, text.data(), text.size());
    return text;
  }

  void read(uint64_t at, char* to, uint64_t bytes) const {
    if (read_at(file_.fd, to, bytes, at, path_) < bytes) ends_early("a header");
  }

  [[noreturn]] void damaged(uint64_t at) const {
    throw Error(ErrorCode::kIo, "the tar file is damaged at byte " + std::to_string(at), path_,
                "copy it again");
  }
  [[noreturn]] void ends_early(const std::string& within) const {
    throw Error(ErrorCode::kIo, "the tar file ends early, within " + within, path_,
                "copy it again");
  }

  const std::string path_;
  const RegularFile file_;
  TarLayout layout_;
  std::string long_name_, long_size_;  // the next member's
  bool extended_ = false;              // the last header describes a member that must follow
};

}  // namespace

TarLayout for_each_tar_member(const std::string& path,
                              const std::function<void(const TarMember&)>& body) {
  return TarReader(path).run(body);
}

void read_part(const std::string& path, void* to, uint64_t bytes, uint64_t offset) {
  const RegularFile file = open_regular_file(path);
  if (read_at(file.fd, to, bytes, offset, path) < bytes) {
    throw Error(ErrorCode::kIo, "the file ends early", path);
  }
}

}  // namespace fleet::data
