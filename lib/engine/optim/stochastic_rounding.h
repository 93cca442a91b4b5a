// Stochastic rounding from float to bfloat16, for parameters and states that are stored in it.
//
// A value between two neighbours goes to the upper one with the probability of its distance from
// the lower one, so that the mean of the results is the value: updates below half a step of
// bfloat16 (2^-9 of the value) are not lost. The random bits depend on (seed, name of the
// parameter, number of updates, element, which of its values) only, and not on threads, ranks or
// the operation that holds the parameter. Element: the index in memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/dropout_mask.h"

namespace fleet {

// The key of a parameter. seed: the job's.
constexpr uint64_t rounding_key(uint64_t seed, std::string_view parameter) {
  uint64_t name = 14695981039346656037u;  // FNV-1a
  for (const char c : parameter) name = (name ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return dropout_stream(seed, name);
}

// Values of one element that share 64 random bits: the parameter and its first states.
inline constexpr int kValuesOfDraw = 4;

// The start of the random bits of an update. value: 0 for the parameter, 1 + s for state s.
constexpr uint64_t rounding_stream(uint64_t key, int64_t step, int value) {
  const uint64_t stream = dropout_stream(key, static_cast<uint64_t>(step));
  const int draw = value / kValuesOfDraw;
  return draw == 0 ? stream : dropout_mix(stream + static_cast<uint64_t>(draw));
}
// 64 random bits of an element; a value takes 16 of them, from rounding_shift() on.
constexpr uint64_t rounding_draw(uint64_t stream, uint64_t element) {
  return dropout_mix(stream + (element + 1) * 0x9e3779b97f4a7c15u);
}
constexpr int rounding_shift(int value) { return value % kValuesOfDraw * 16; }

// bits: a float's. random: 16 random bits. Returns the bits of the bfloat16. Values that are exact
// in bfloat16 do not change; infinities stay, NaNs stay NaNs and become quiet.
constexpr uint32_t round_to_bfloat16(uint32_t bits, uint32_t random) {
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  const uint32_t rounded = (bits + (magnitude < 0x7f800000u ? random : 0u)) >> 16;
  return magnitude > 0x7f800000u ? quiet_nan : rounded;
}

}  // namespace fleet
