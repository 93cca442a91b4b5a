#include "base/hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/file.h"

namespace fleet {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;

// Bijective in each argument.
uint64_t mix(uint64_t lane, uint64_t word) { return std::rotl((lane ^ word) * kOdd, 29); }

uint64_t load(const unsigned char* from, size_t bytes = 8) {
  uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

}  // namespace

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t lanes[4] = {seed, seed + kOdd, seed ^ kOdd,
                       ~seed};  // independent of each other, for speed
  size_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], load(at + 8 * i));
  }
  for (; left > 0; left -= left < 8 ? left : 8, at += 8) {
    lanes[0] = mix(lanes[0], load(at, left < 8 ? left : 8));
  }
  uint64_t hash = bytes;
  for (const uint64_t lane : lanes) hash = mix(hash, lane);
  return hash ^ (hash >> 32);
}

std::optional<uint64_t> hash_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  // Hashed as a whole, so that short reads do not change the result.
  std::vector<unsigned char> piece(1 << 20);
  uint64_t hash = 0;
  for (size_t have = 0;;) {
    const ssize_t got = ::read(file.get(), piece.data() + have, piece.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    have += static_cast<size_t>(got);
    if (got > 0 && have < piece.size()) continue;
    hash = hash_bytes(piece.data(), have, hash);
    if (got == 0) return hash;
    have = 0;
  }
}

}  // namespace fleet
