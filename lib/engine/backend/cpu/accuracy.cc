#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

// The number of classes ranked before the label's: larger, or equal with a smaller index.
FLEET_SIMD int64_t rank_of(const float* logits, int64_t classes, int64_t label) {
  const float own = logits[label];
  int64_t before = 0;
#pragma omp simd reduction(+ : before)
  for (int64_t c = 0; c < classes; ++c) {
    before += (logits[c] > own) | ((logits[c] == own) & (c < label)) ? 1 : 0;
  }
  return before;
}

}  // namespace

FLEET_KERNEL(cpu, accuracy) {
  def.create = [](KernelContext& context) {
    const Argument& x = context.inputs[0];
    const float* logits = x.as<float>();
    const int64_t* label = context.inputs[1].as<int64_t>();
    const float* weight = context.inputs[2].as<float>();
    float* counts = context.outputs[0].as<float>();
    const int64_t classes = x.shape[x.shape.rank() - 1];
    const int64_t samples = x.shape.elements() / classes;
    const int64_t k = context.attributes().integer("k");
    return make_kernel([=](Stream&) {
      double first = 0, among = 0, total = 0;
      for (int64_t n = 0; n < samples; ++n) {
        const float* row = logits + n * classes;
        total += weight[n];
        if (label[n] < 0 || label[n] >= classes || row[label[n]] != row[label[n]]) continue;
        const int64_t rank = rank_of(row, classes, label[n]);
        if (rank == 0) first += weight[n];
        if (rank < k) among += weight[n];
      }
      counts[0] = static_cast<float>(first);
      counts[1] = static_cast<float>(among);
      counts[2] = static_cast<float>(total);
    });
  };
}

}  // namespace fleet
