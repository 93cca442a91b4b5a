#include <bit>
#include <numbers>

#include "backend/cpu/elementwise.h"
#include "ops/rope_frequencies.h"

namespace fleet {
namespace {

// sin and cos in double, where angles of long contexts keep their digits: exact to float.
FLEET_INLINE void sine_and_cosine(double angle, double* sine, double* cosine) {
  const double magic = 6755399441055744.0;  // 1.5 * 2^52: rounds to an integer
  const double shifted = angle * (2 * std::numbers::inv_pi) + magic;
  const double n = shifted - magic;
  const double r = (angle - n * 1.5707963267948966) - n * 6.123233995736766e-17;  // pi / 2
  const double z = r * r;
  const double s =
      r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880))));
  const double c =
      1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 - z / 3628800))));
  const int64_t quadrant = std::bit_cast<int64_t>(shifted) & 3;
  const double of_sine = (quadrant & 1) ? c : s, of_cosine = (quadrant & 1) ? s : c;
  *sine = (quadrant & 2) ? -of_sine : of_sine;
  *cosine = ((quadrant + 1) & 2) ? -of_cosine : of_cosine;
}

// As transformers: the angle is a float32 product.
FLEET_SIMD void fill_angles(float position, const float* frequencies, float factor, int64_t pairs,
                            float* cos, float* sin) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    double sine, cosine;
    sine_and_cosine(position * frequencies[i], &sine, &cosine);
    cos[i] = static_cast<float>(cosine) * factor;
    sin[i] = static_cast<float>(sine) * factor;
  }
}

template <typename Id>
struct RopeTable {
  const Id* positions;
  int64_t rows, length;
  RopeSettings settings;
  std::vector<float> frequencies;
  float *scratch, *cos, *sin;  // scratch: [rows, pairs] for type "dynamic"

  // The frequencies of a row: those of its own length if they depend on it.
  const float* of_row(int64_t row) const {
    if (!settings.is_dynamic()) return frequencies.data();
    const Id* own = positions + row * length;
    const int64_t longest = static_cast<int64_t>(*std::max_element(own, own + length)) + 1;
    if (longest <= settings.original) return frequencies.data();
    const double base = settings.dynamic().base(longest);
    float* made = scratch + row * settings.dim / 2;
    for (int64_t i = 0; i < settings.dim / 2; ++i) made[i] = rope_frequency(base, i, settings.dim);
    return made;
  }

  void run() const {
    const int64_t pairs = settings.dim / 2;
    const float factor = settings.attention_factor();
    const bool parallel = rows * length * pairs >= cpu::kParallelElements;
    for (int64_t row = 0; row < rows; ++row) {
      const float* own = of_row(row);
#pragma omp parallel for if (parallel)
      for (int64_t s = 0; s < length; ++s) {
        const int64_t at = row * length + s;
        fill_angles(static_cast<float>(positions[at]), own, factor, pairs, cos + at * pairs,
                    sin + at * pairs);
      }
    }
  }
};

}  // namespace

FLEET_KERNEL(cpu, rope_table) {
  def.layouts = [](LayoutQuery& query) {
    const Shape& table = query.output_var(0).shape;
    query.workspace(static_cast<size_t>(table[0] * table[2]) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    const Argument& positions = context.inputs[0];
    const auto make = [&]<typename Id>(Id) {
      const RopeSettings settings(context.attributes());
      RopeTable<Id> table{.positions = positions.as<const Id>(),
                          .rows = positions.shape[0],
                          .length = positions.shape[1],
                          .settings = settings,
                          .frequencies = settings.frequencies(),
                          .scratch = static_cast<float*>(context.workspace),
                          .cos = context.outputs[0].as<float>(),
                          .sin = context.outputs[1].as<float>()};
      return make_kernel([table = std::move(table)](Stream&) { table.run(); });
    };
    return positions.dtype == DType::kInt32 ? make(int32_t()) : make(int64_t());
  };
}

}  // namespace fleet
