// A fast hash of bytes, to compare contents between processes. Not for secrets, and alike only
// between machines of one byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fleet {

// Contents that differ in one aligned word of 8 bytes always have different hashes. About as fast
// as memory is read.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
// Of a regular file's content; nothing where it cannot be read.
std::optional<uint64_t> hash_file(const std::string& path);

}  // namespace fleet
