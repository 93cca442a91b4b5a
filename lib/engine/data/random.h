// Random draws that depend only on their key: Philox4x32-10 (Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011). They are the same for every rank, thread and world size.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fleet::data {

// splitmix64's finaliser (Steele et al., OOPSLA 2014): a bijective mix of 64 bits.
uint64_t mix(uint64_t value);

// One value for (seed, epoch, sample): the key for dropout and augmentation of that sample.
uint64_t sample_key(uint64_t seed, int64_t epoch, int64_t sample);

// The key of a sample's draws in evaluations: the same in each of them.
uint64_t evaluation_key(int64_t sample);

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// A stream of draws for one key. Streams with different names are independent: switching on one
// augmentation does not change the draws of another.
class RandomStream {
 public:
  RandomStream(uint64_t key, std::string_view stream);
  uint32_t bits();
  double uniform();                         // [0, 1), 32 bits
  double uniform(double low, double high);  // [low, high)
  double normal();                          // mean 0, deviation 1 (Box and Muller, 1958)
  int64_t below(int64_t count);             // 0 .. count-1; count >= 1
 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> values_{};
  int used_ = 4;
};

// A draw from Beta(alpha, alpha), for mixup and cutmix; alpha > 0: within [0, 1].
double draw_beta(double alpha, RandomStream& random);
// A draw from the Dirichlet distribution with `count` parameters alpha > 0: shares with sum 1.
std::vector<double> draw_dirichlet(double alpha, int count, RandomStream& random);

}  // namespace fleet::data
