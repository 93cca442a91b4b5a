// Dropout's mask as a pure function, so that every backend draws the same mask.
#pragma once

#include <cstdint>

namespace fleet {

// splitmix64's finalizer (Steele et al., OOPSLA 2014): a bijective mix of 64 bits.
constexpr uint64_t dropout_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// The start of the sequence for one sample and one dropout.
constexpr uint64_t dropout_stream(uint64_t sample_key, uint64_t salt) {
  return dropout_mix(dropout_mix(sample_key + 0x9e3779b97f4a7c15u) + salt);
}

// 32 random bits for element i of the sample. splitmix64 is counter-based, so any element can be
// drawn directly.
constexpr uint32_t dropout_bits(uint64_t stream, uint64_t i) {
  return static_cast<uint32_t>(dropout_mix(stream + (i + 1) * 0x9e3779b97f4a7c15u) >> 32);
}

// An element is dropped where its bits are below this; p = 1 drops all.
constexpr uint64_t dropout_threshold(double p) { return static_cast<uint64_t>(p * 0x1p32); }

}  // namespace fleet
