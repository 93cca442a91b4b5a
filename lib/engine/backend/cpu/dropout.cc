#include "backend/cpu/elementwise.h"
#include "exec/sample_layouts.h"
#include "ops/dropout_mask.h"

namespace fleet {
namespace {

// The elements of one sample, from `first` on.
template <typename T>
FLEET_SIMD void drop(const T* x, T* y, int64_t count, uint64_t stream, int64_t first,
                     uint64_t threshold, float scale) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const bool kept = dropout_bits(stream, static_cast<uint64_t>(first + i)) >= threshold;
    const float value = x[i] * scale;
    y[i] = kept ? value : 0;
  }
}

// Elements of one sample that is kept, or dropped, as a whole.
template <typename T>
FLEET_SIMD void drop_whole(const T* x, T* y, int64_t count, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i] * factor;
    y[i] = factor == 0 ? 0 : value;
  }
}

template <typename T>
std::unique_ptr<Kernel> make_typed(KernelContext& context) {
  const T* x = context.inputs[0].as<T>();
  const int64_t* keys = context.inputs[1].as<int64_t>();
  T* y = context.outputs[0].as<T>();
  const int64_t count = context.inputs[0].layout.elements();
  if (context.attributes().boolean("is_test")) {
    return make_kernel([=](Stream&) { cpu::parallel_copy(y, x, count * sizeof(T)); });
  }
  const double p = context.attributes().number("p");
  const uint64_t salt = static_cast<uint64_t>(context.attributes().integer("salt"));
  const uint64_t threshold = dropout_threshold(p);
  const float scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0;
  const int64_t size = count / context.inputs[0].shape[0];  // per sample
  const bool whole = context.attributes().boolean("whole_samples");
  return make_kernel([=](Stream&) {
    cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t sample = begin / size, first = begin % size;
        const int64_t length = std::min(size - first, end - begin);
        const uint64_t stream = dropout_stream(static_cast<uint64_t>(keys[sample]), salt);
        if (whole) {
          const bool kept = dropout_bits(stream, 0) >= threshold;
          drop_whole(x + begin, y + begin, length, kept ? scale : 0);
        } else {
          drop(x + begin, y + begin, length, stream, first, threshold, scale);
        }
        begin += length;
      }
    });
  });
}

// The gradient is the same function of dy.
void define_dropout(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = keep_samples_layout;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_typed<T>(context); });
  };
}

}  // namespace

FLEET_KERNEL(cpu, dropout) { define_dropout(def); }
FLEET_KERNEL(cpu, dropout_grad) { define_dropout(def); }

}  // namespace fleet
