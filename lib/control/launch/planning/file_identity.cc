#include "launch/planning/file_identity.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/file.h"

namespace fleet {
namespace {

constexpr uint64_t kWhole = 1 << 20;  // files up to this size are read completely

std::string read_at(int file, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

template <typename T>
bool take(std::string_view bytes, size_t offset, T* value) {
  if (offset + sizeof(T) > bytes.size()) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

// The build id (the GNU linker's note) among the notes of one segment.
std::string build_id_of(std::string_view notes) {
  Elf64_Nhdr note;
  for (size_t at = 0; take(notes, at, &note);) {
    const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
    const size_t name = at + sizeof note, text = name + padded(note.n_namesz);
    at = text + padded(note.n_descsz);
    if (at > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(name, 3) == "GNU") {
      return std::string(notes.substr(text, note.n_descsz));
    }
  }
  return {};
}

// Six bytes of the build id suffice to distinguish builds.
std::string build_id(int file) {
  constexpr size_t kShown = 6, kMaxSegments = 256, kMaxNotes = 1 << 16;
  Elf64_Ehdr head;
  if (!take(read_at(file, 0, sizeof head), 0, &head) ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > kMaxSegments) {
    return {};
  }
  const std::string segments = read_at(file, head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr));
  Elf64_Phdr segment;
  for (size_t i = 0; take(segments, i * sizeof segment, &segment); ++i) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    const std::string id = build_id_of(read_at(file, segment.p_offset, segment.p_filesz));
    std::string text;
    char digits[3];
    for (size_t b = 0; b < std::min(id.size(), kShown); ++b) {
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(id[b]));
      text += digits;
    }
    if (!text.empty()) return text;
  }
  return {};
}

// FNV-1a: detects mistakes, not forgery.
uint64_t hash(std::string_view bytes, uint64_t value = 0xcbf29ce484222325) {
  for (const unsigned char byte : bytes) value = (value ^ byte) * 0x100000001b3;
  return value;
}

std::string hash_text(uint64_t value, uint64_t size) {
  char text[64];
  std::snprintf(text, sizeof text, "hash %016llx (%llu bytes)",
                static_cast<unsigned long long>(value),  // NOLINT(runtime/int): printf's
                static_cast<unsigned long long>(size));  // NOLINT(runtime/int)
  return text;
}

}  // namespace

std::string text_identity(std::string_view text) { return hash_text(hash(text), text.size()); }

std::string file_identity(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (const std::string id = build_id(file.get()); !id.empty()) return "build " + id;
  const auto size = static_cast<uint64_t>(status.st_size);
  uint64_t value = hash(read_at(file.get(), 0, size <= kWhole ? size : kWhole / 2));
  if (size > kWhole) value = hash(read_at(file.get(), size - kWhole / 2, kWhole / 2), value);
  return hash_text(value, size);
}

}  // namespace fleet
