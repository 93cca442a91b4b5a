// Initial values of parameters and states.
#pragma once

#include <cstdint>
#include <span>

#include "graph/program.h"

namespace fleet {

// Draws the initial values of a variable, row-major, into `values`, which has one entry per
// element. They depend on (seed, name) only, so that every rank draws the same. Generator:
// splitmix64; normal deviates by Box-Muller. Thread-safe.
void draw_initial_values(const Var& var, uint64_t seed, std::span<float> values);

// Sebastiano Vigna's splitmix64. Its states form an arithmetic series, so any draw is accessible
// directly.
class SplitMix64 {
 public:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t state() const { return state_; }
  void skip(uint64_t draws) { state_ += draws * kStep; }
  uint64_t next() {
    uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)

 private:
  uint64_t state_;
};

// values[i] = mean + deviation * sqrt(-2 ln u) * cos(2 pi v), from two draws each. Each float has
// the same bits as the C library's result in double precision. Thread-safe.
void draw_normal(double mean, double deviation, SplitMix64 draws, std::span<float> values);
// The same, one value at a time, with the C library.
void draw_normal_scalar(double mean, double deviation, SplitMix64 draws, std::span<float> values);

}  // namespace fleet
