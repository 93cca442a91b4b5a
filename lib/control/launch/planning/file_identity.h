// A short identity of a file, to check that nodes have the same one.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// "build 91bc7e0a1122" for an ELF file with a build id, which the linker derives from the content.
// Otherwise "hash 91bc7e0a11223344 (4711 bytes)" of the whole file, or of the first and last 512
// KiB above 1 MiB. "" if the file cannot be read. Reads little, so that a start stays fast.
std::string file_identity(const std::string& path);
// "hash 91bc7e0a11223344 (4711 bytes)"
std::string text_identity(std::string_view text);

}  // namespace fleet
