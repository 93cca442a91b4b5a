// Whether two nodes have the same file, told by a few bytes.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// "build 91bc7e0a1122" of an ELF file that has a build id, which its linker made from what is in
// it; else "hash 91bc7e0a11223344 (4711 bytes)" of the whole, or above 1 MiB of its first and last
// 512 KiB. "" where the file cannot be read. Reads little, so that a start stays quick.
std::string file_identity(const std::string& path);
// "hash 91bc7e0a11223344 (4711 bytes)"
std::string text_identity(std::string_view text);

}  // namespace fleet
