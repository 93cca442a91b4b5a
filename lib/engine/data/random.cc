#include "data/random.h"

#include "base/error.h"

namespace fleet::data {

uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t sample_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return mix(mix(mix(seed) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(sample));
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t key, std::string_view stream)
    : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}, stream_(0) {
  for (const char letter : stream) stream_ = mix(stream_ + static_cast<unsigned char>(letter));
}

uint32_t RandomStream::bits() {
  if (used_ == 4) {
    values_ = philox({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                     key_);
    ++block_;
    used_ = 0;
  }
  return values_[used_++];
}

double RandomStream::uniform() { return bits() * 0x1p-32; }

double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

int64_t RandomStream::below(int64_t count) {
  FLEET_CHECK(count >= 1 && count <= (int64_t{1} << 32),
              "RandomStream::below() of a count out of range");
  // Multiplying instead of rejecting has a bias below count / 2^32.
  return static_cast<int64_t>((uint64_t{bits()} * static_cast<uint64_t>(count)) >> 32);
}

}  // namespace fleet::data
