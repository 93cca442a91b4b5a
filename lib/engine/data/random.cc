#include "data/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fleet::data {
namespace {

// The logarithm of a draw from Gamma(shape, 1): a draw itself underflows for small shapes.
// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000.
double log_gamma_draw(double shape, RandomStream& random) {
  if (shape < 1) {
    return log_gamma_draw(shape + 1, random) + std::log(1 - random.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x, v = root * root * root;
    const double u = 1 - random.uniform();
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d) + std::log(v);
    }
  }
}

}  // namespace

uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t sample_key(uint64_t seed, int64_t epoch, int64_t sample) {
  return mix(mix(mix(seed) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(sample));
}

uint64_t evaluation_key(int64_t sample) { return sample_key(0, 0, sample); }

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

double RandomStream::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

int64_t RandomStream::below(int64_t count) {
  FLEET_CHECK(count >= 1 && count <= (int64_t{1} << 32),
              "RandomStream::below() of a count out of range");
  // Multiplying instead of rejecting has a bias below count / 2^32.
  return static_cast<int64_t>((uint64_t{bits()} * static_cast<uint64_t>(count)) >> 32);
}

double draw_beta(double alpha, RandomStream& random) {
  const double a = log_gamma_draw(alpha, random), b = log_gamma_draw(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

std::vector<double> draw_dirichlet(double alpha, int count, RandomStream& random) {
  std::vector<double> shares(count);
  for (double& share : shares) share = log_gamma_draw(alpha, random);
  // Relative to the largest, since with a small alpha each of them may underflow.
  const double largest = *std::max_element(shares.begin(), shares.end());
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - largest);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace fleet::data
