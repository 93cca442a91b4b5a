#include <cmath>

#include "backend/cuda/launch.h"
#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

struct LabelShares {
  const int64_t *label, *other;  // other: null: one label per sample
  const float* own_share;
  int64_t classes, ignored;
  float on, rest;

  __device__ bool is_class(int64_t value) const {
    return value == ignored || (value >= 0 && value < classes);
  }
};

__global__ void distribute_labels(LabelShares shares, float* target, float* counted,
                                  int64_t count) {
  const int64_t i = cuda::thread_index();
  if (i >= count) return;
  const int64_t n = cuda::quotient(i, shares.classes), c = i - n * shares.classes;
  const int64_t label = shares.label[n], other = shares.other ? shares.other[n] : shares.ignored;
  const float share = shares.other ? shares.own_share[n] : 1;
  const float own = label == shares.ignored ? 0 : share;
  const float others = other == shares.ignored ? 0 : 1 - share;
  const float sum = own + others;
  float value = sum > 0 ? shares.rest : 0;
  if (c == label && own > 0) value += shares.on * own / sum;
  if (c == other && others > 0) value += shares.on * others / sum;
  target[i] = value;
  const bool known = shares.is_class(label) && shares.is_class(other);
  if (c == 0) counted[n] = known ? sum : NAN;
}

}  // namespace

FLEET_KERNEL(cuda, label_distribution) {
  def.create = [](KernelContext& context) {
    const bool mixed = context.inputs.size() > 2 && context.inputs[1].data;
    const Shape shape = context.outputs[0].shape;
    const double smoothing = context.attributes().number("label_smoothing");
    const LabelShares shares{context.inputs[0].as<const int64_t>(),
                             mixed ? context.inputs[1].as<const int64_t>() : nullptr,
                             mixed ? context.inputs[2].as<const float>() : nullptr,
                             shape[1],
                             context.attributes().integer("ignore_index"),
                             static_cast<float>(1 - smoothing),
                             static_cast<float>(smoothing / static_cast<double>(shape[1]))};
    float *target = context.outputs[0].as<float>(), *counted = context.outputs[1].as<float>();
    return make_kernel([=, count = shape.elements()](Stream& stream) {
      cuda::launch(distribute_labels, cuda::blocks_for(count), cuda::kBlock, 0,
                   cuda::stream_of(stream), shares, target, counted, count);
    });
  };
}

}  // namespace fleet
