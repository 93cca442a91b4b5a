// A fast hash of bytes, to compare contents between processes. Not cryptographic, and comparable
// only between machines of the same byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fleet {

// Contents that differ in one aligned word of 8 bytes always have different hashes. Runs at about
// memory speed.
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);
inline uint64_t hash_text(std::string_view text, uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}
// The hash of a regular file's content; nullopt if it cannot be read.
std::optional<uint64_t> hash_file(const std::string& path);

}  // namespace fleet
