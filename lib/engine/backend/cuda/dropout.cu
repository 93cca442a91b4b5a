#include "backend/cuda/copies.h"
#include "backend/cuda/elementwise.h"
#include "exec/sample_layouts.h"
#include "ops/dropout_mask.h"

namespace fleet {
namespace {

// A pack lies within one sample. whole: all elements of a sample have the mask of the first.
template <int pack, bool whole, typename T>
__global__ void drop(const T* x, const int64_t* sample_key, T* y, int64_t count, int64_t per_sample,
                     uint64_t salt, uint64_t threshold, float scale) {
  const int64_t begin = cuda::thread_index() * pack;
  if (begin >= count) return;
  const int64_t sample = cuda::quotient(begin, per_sample), first = begin - sample * per_sample;
  const uint64_t stream = dropout_stream(static_cast<uint64_t>(sample_key[sample]), salt);
  cuda::Pack<float, pack> values = cuda::load_floats<pack>(x, begin);
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    const auto element = static_cast<uint64_t>(whole ? 0 : first + i);
    const bool kept = dropout_bits(stream, element) >= threshold;
    values.at[i] = kept ? values.at[i] * scale : 0;
  }
  cuda::store_floats<pack>(y, begin, values);
}

// The gradient is the same function of dy.
std::unique_ptr<Kernel> make_dropout(KernelContext& context) {
  const Argument x = context.inputs[0], y = context.outputs[0];
  const int64_t count = y.layout.elements(), per_sample = count / y.shape[0];
  const Attributes& attributes = context.attributes();
  const double p = attributes.number("p");
  const bool whole = attributes.boolean("whole_samples");
  const uint64_t salt = static_cast<uint64_t>(attributes.integer("salt"));
  const int64_t* key = context.inputs[1].as<const int64_t>();
  const float scale = p < 1 ? static_cast<float>(1 / (1 - p)) : 0;
  return cuda::dispatch(y.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kWide = cuda::kPack<T>;
    const bool wide = per_sample % kWide == 0;
    const auto narrow_kernel = whole ? drop<1, true, T> : drop<1, false, T>;
    const auto wide_kernel = whole ? drop<kWide, true, T> : drop<kWide, false, T>;
    const auto kernel = wide ? wide_kernel : narrow_kernel;
    return make_kernel([=](Stream& stream) {
      cuda::launch(kernel, cuda::blocks_for(count, wide ? cuda::kBlock * kWide : cuda::kBlock),
                   cuda::kBlock, 0, cuda::stream_of(stream), x.as<const T>(), key, y.as<T>(), count,
                   per_sample, salt, dropout_threshold(p), scale);
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, dropout) {
  def.dtypes = cuda::floating_types();
  def.layouts = keep_samples_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("is_test") ? cuda::copy_kernel(context)
                                                   : make_dropout(context);
  };
}

FLEET_KERNEL(cuda, dropout_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = keep_samples_layout;
  def.create = make_dropout;
}

}  // namespace fleet
