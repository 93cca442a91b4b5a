// Interactions of features: [samples, features, size], of which each sample is computed alone.
#pragma once

#include <memory>

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

struct FeatureRows {
  int64_t samples, features, size;

  explicit FeatureRows(const Shape& x) : samples(x[0]), features(x[1]), size(x[2]) {}
  int64_t sample() const { return features * size; }  // values of a sample
  int64_t pairs() const { return features * (features - 1) / 2; }
};

constexpr int64_t kFeatureColumns = 64;  // values of a feature that are summed at a time

// Calls run(n) for each sample, by several threads if there is enough work.
template <typename Run>
std::unique_ptr<Kernel> make_sample_kernel(const FeatureRows& rows, Run run) {
  return make_kernel([=](Stream&) {
    const bool parallel = rows.samples * rows.sample() >= kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t n = 0; n < rows.samples; ++n) run(n);
  });
}

}  // namespace fleet::cpu
