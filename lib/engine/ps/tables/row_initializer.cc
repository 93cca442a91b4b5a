#include "ps/tables/row_initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "data/random.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

constexpr uint32_t kValues = 0, kAdmission = 1;  // streams of draws

// Philox blocks of one id and stream.
class Draws {
 public:
  Draws(uint64_t key, uint32_t stream)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}, stream_(stream) {}
  double uniform() {  // [0, 1)
    if (used_ == 4) {
      bits_ = data::philox({block_++, 0, stream_, 0}, key_);
      used_ = 0;
    }
    return bits_[static_cast<size_t>(used_++)] * 0x1p-32;
  }
  double normal() {  // Box and Muller, 1958
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  double truncated_normal() {
    for (;;) {
      const double value = normal();
      if (std::abs(value) <= 2) return value;
    }
  }

 private:
  const std::array<uint32_t, 2> key_;
  const uint32_t stream_;
  uint32_t block_ = 0;
  std::array<uint32_t, 4> bits_{};
  int used_ = 4;
};

}  // namespace

RowInitializer::RowInitializer(const InitializerSettings& settings, uint64_t seed,
                               const std::string& table)
    : settings_(settings), key_(mix_id(seed)) {
  for (const char letter : table) key_ = mix_id(key_ + static_cast<unsigned char>(letter));
}

void RowInitializer::fill(uint64_t id, float* values, int dim) const {
  using Kind = InitializerSettings::Kind;
  if (settings_.kind == Kind::kConstant) {
    std::fill_n(values, dim, static_cast<float>(settings_.value));
    return;
  }
  Draws draws(mix_id(key_ + id), kValues);
  const double width = settings_.high - settings_.low;
  for (int i = 0; i < dim; ++i) {
    double value;
    switch (settings_.kind) {
      case Kind::kNormal:
        value = settings_.mean + settings_.deviation * draws.normal();
        break;
      case Kind::kTruncatedNormal:
        value = settings_.mean + settings_.deviation * draws.truncated_normal();
        break;
      default:
        value = settings_.low + width * draws.uniform();
    }
    values[i] = static_cast<float>(value);
  }
}

double RowInitializer::draw(uint64_t id) const {
  return Draws(mix_id(key_ + id), kAdmission).uniform();
}

}  // namespace fleet::ps
