#include "launch/planning/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace fleet {
namespace {

template <typename T>
bool take(std::string_view bytes, size_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
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

}  // namespace

std::optional<ElfFile> ElfFile::open(const std::string& path) {
  constexpr size_t kMaxSegments = 256;
  ElfFile elf;
  elf.file_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!elf.file_ || ::fstat(elf.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  Elf64_Ehdr head;
  if (!take(elf.read(0, sizeof head), 0, &head) ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > kMaxSegments) {
    return std::nullopt;
  }
  const std::string table = elf.read(head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr));
  Elf64_Phdr segment;
  for (size_t i = 0; take(table, i * sizeof segment, &segment); ++i) {
    elf.segments_.push_back({segment.p_type, segment.p_offset, segment.p_vaddr, segment.p_filesz});
  }
  return elf;
}

std::string ElfFile::build_id() const {
  constexpr size_t kMaxNotes = 1 << 16;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_NOTE || segment.size > kMaxNotes) continue;
    std::string id = build_id_of(read(segment.offset, segment.size));
    if (!id.empty()) return id;
  }
  return {};
}

ElfFile::Links ElfFile::links() const {
  constexpr size_t kMaxTable = 1 << 20;
  std::string table;
  for (const Segment& segment : segments_) {
    if (segment.type == PT_DYNAMIC && segment.size <= kMaxTable) {
      table = read(segment.offset, segment.size);
    }
  }
  std::vector<std::pair<int64_t, uint64_t>> texts;  // by tag: the offset in the table of texts
  std::optional<uint64_t> text_table;               // its address
  Elf64_Dyn entry;
  for (size_t i = 0; take(table, i * sizeof entry, &entry) && entry.d_tag != DT_NULL; ++i) {
    if (entry.d_tag == DT_STRTAB) text_table = entry.d_un.d_ptr;
    if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) {
      texts.emplace_back(entry.d_tag, entry.d_un.d_val);
    }
  }
  Links links;
  if (!text_table) return links;
  for (const auto& [tag, at] : texts) {
    const std::string text = text_at(*text_table + at);
    if (text.empty()) continue;
    if (tag == DT_NEEDED) {
      links.libraries.push_back(text);
    } else {
      std::ranges::move(split(text, ':'), std::back_inserter(links.folders));
    }
  }
  return links;
}

std::string ElfFile::read(uint64_t offset, uint64_t size) const {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::pread(file_.get(), bytes.data() + have, bytes.size() - have,
                              static_cast<off_t>(offset + have));
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

std::string ElfFile::text_at(uint64_t address) const {
  constexpr uint64_t kLongest = 4096;
  const auto offset = offset_of(address);
  if (!offset) return {};
  const std::string bytes = read(*offset, kLongest);
  const size_t end = bytes.find('\0');
  return end == std::string::npos ? std::string() : bytes.substr(0, end);
}

std::optional<uint64_t> ElfFile::offset_of(uint64_t address) const {
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || address < segment.address) continue;
    const uint64_t within = address - segment.address;
    if (within < segment.size) return segment.offset + within;
  }
  return std::nullopt;
}

}  // namespace fleet
