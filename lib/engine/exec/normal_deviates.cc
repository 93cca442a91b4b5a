#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/cpu.h"
#include "exec/initialize.h"

namespace fleet {
namespace {

constexpr size_t kBlock = 256;

FLEET_INLINE uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// SplitMix64::uniform() of a value from next(). Converts 53 bits to a double in two parts, exactly.
FLEET_INLINE double uniform_of(uint64_t bits) {
  const uint64_t all = bits >> 11;
  const double high = std::bit_cast<double>(all >> 32 | 0x4530000000000000ull) - 0x1.00000001p84;
  const double low = std::bit_cast<double>((all & 0xffffffffull) | 0x4330000000000000ull);
  return (high + low + 0.5) * 0x1p-53;
}

// ln x of a positive normal number, within two units in the last place. Method and coefficients
// come from FreeBSD's e_log.c (Sun Microsystems, fdlibm).
FLEET_INLINE double log_of(double x) {
  const uint64_t bits =
      std::bit_cast<uint64_t>(x) + (0x3ff0000000000000ull - 0x3fe6a09e00000000ull);
  // The exponent as a double: 2^52 + exponent + bias, less 2^52 and the bias.
  const double k = std::bit_cast<double>(bits >> 52 | 0x4330000000000000ull) - (0x1p52 + 1023);
  const double f =
      std::bit_cast<double>((bits & 0x000fffffffffffffull) + 0x3fe6a09e00000000ull) - 1;
  const double s = f / (2 + f), z = s * s, w = z * z;
  const double even = w * (3.999999999940941908e-01 +
                           w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 +
                               w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double half = 0.5 * f * f;
  return k * 6.93147180369123816490e-01 -
         ((half - (s * (half + even + odd) + k * 1.90821492927058770002e-10)) - f);
}

// cos x for x in [0, 2 pi], within 2^-51, with fdlibm's reduction and kernels.
FLEET_INLINE double cos_of(double x) {
  constexpr double kRound = 0x1.8p52;
  const double shifted = x * (2 / std::numbers::pi) + kRound;
  const double n = shifted - kRound;
  const uint64_t quadrant = std::bit_cast<uint64_t>(shifted);
  const double r = (x - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11;
  const double z = r * r;
  const double sine =
      r + r * z *
              (-1.66666666666666324348e-01 +
               z * (8.33333333332248946124e-03 +
                    z * (-1.98412698298579493134e-04 +
                         z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 +
                                                                z * 1.58969099521155010221e-10)))));
  const double cosine =
      1 - 0.5 * z +
      z * z *
          (4.16666666666666019037e-02 +
           z * (-1.38888888888741095749e-03 +
                z * (2.48015872894767294178e-05 +
                     z * (-2.75573143513906633035e-07 +
                          z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const double value = (quadrant & 1) != 0 ? sine : cosine;
  return ((quadrant + 1) & 2) != 0 ? -value : value;  // cos, -sin, -cos, sin
}

// Draws deviates with the functions above. Returns whether each certainly equals the rounded result
// of the C library's functions; that fails for a value within both errors of a float's rounding
// boundary. state: before these draws.
FLEET_SIMD bool draw_block(double mean, double deviation, uint64_t state, float* values) {
  // Both differ from the true value by less than 2^-48 of the deviation's size; the sum's rounding
  // error is 2^-53 of the addend.
  constexpr double kError = 0x1p-46;
  const double of_mean = std::fabs(mean) * kError, of_deviation = std::fabs(deviation) * kError;
  uint64_t unsure = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t first = state + (2 * i + 1) * SplitMix64::kStep;
    const double radius = std::sqrt(-2 * log_of(uniform_of(mixed(first))));
    const double angle = 2 * std::numbers::pi * uniform_of(mixed(first + SplitMix64::kStep));
    const double value = mean + deviation * radius * cos_of(angle);
    const double error = of_mean + of_deviation * radius;
    const auto low = static_cast<float>(value - error), high = static_cast<float>(value + error);
    unsure |= low == high ? 0 : 1;
    values[i] = high;
  }
  return unsure == 0;
}

}  // namespace

void draw_normal_scalar(double mean, double deviation, SplitMix64 draws, std::span<float> values) {
  for (float& value : values) {
    const double radius = std::sqrt(-2 * std::log(draws.uniform()));
    const double angle = 2 * std::numbers::pi * draws.uniform();
    value = static_cast<float>(mean + deviation * radius * std::cos(angle));
  }
}

void draw_normal(double mean, double deviation, SplitMix64 draws, std::span<float> values) {
  for (size_t done = 0; done < values.size(); done += kBlock) {
    const std::span<float> block = values.subspan(done, std::min(kBlock, values.size() - done));
    const bool whole = block.size() == kBlock;
    if (!whole || !draw_block(mean, deviation, draws.state(), block.data())) {
      draw_normal_scalar(mean, deviation, draws, block);
    }
    draws.skip(2 * block.size());
  }
}

}  // namespace fleet
