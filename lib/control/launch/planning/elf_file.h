// Reads what programs and libraries say about themselves: ELF files of 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

class ElfFile {
 public:
  // nullopt for a file of another kind, and for one that cannot be read.
  static std::optional<ElfFile> open(const std::string& path);

  // The bytes of the note that the linker derives from the content; "" if the file has none.
  std::string build_id() const;

  struct Links {
    std::vector<std::string> libraries;  // DT_NEEDED: "libmpi.so.40"
    std::vector<std::string> folders;    // DT_RPATH and DT_RUNPATH, as written
  };
  // The libraries that the loader looks for, and where first. Empty if the file is static or
  // damaged.
  Links links() const;

 private:
  struct Segment {
    uint32_t type;
    uint64_t offset, address, size;
  };

  std::string read(uint64_t offset, uint64_t size) const;  // less at the end of the file
  std::string text_at(uint64_t address) const;             // up to its zero byte
  std::optional<uint64_t> offset_of(uint64_t address) const;

  UniqueFd file_;
  std::vector<Segment> segments_;
};

}  // namespace fleet
