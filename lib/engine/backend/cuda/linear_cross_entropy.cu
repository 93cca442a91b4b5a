// linear_cross_entropy, and the same with gradients. All rows are computed, also those that do not
// count: how many do is not known when the products are recorded.
#include <cmath>
#include <vector>

#include "backend/cuda/channels.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/labels.h"
#include "backend/cuda/rows.h"
#include "ops/linear_cross_entropy.h"

namespace fleet {
namespace {

struct CudaHeadSizes : HeadSizes {
  using HeadSizes::HeadSizes;

  cuda::Product logits(int64_t count) const {
    return {.rows = count,
            .columns = classes,
            .depth = depth,
            .transpose_b = true,
            .dtype = type,
            .d_stride = stride};
  }
  cuda::Product dhidden(int64_t count) const {
    return {.rows = count, .columns = depth, .depth = classes, .dtype = type, .a_stride = stride};
  }
  cuda::Product dhead(int64_t count, bool adds) const {
    return {.rows = classes,
            .columns = depth,
            .depth = count,
            .transpose_a = true,
            .dtype = type,
            .result = DType::kFloat32,
            .adds = adds,
            .a_stride = stride};
  }
  size_t logits_bytes() const { return chunk * stride * size_of(type); }

  // Memory for the logits and the workspace of the products, in whole lines.
  size_t products_bytes() const {
    return (logits_bytes() + cuda::workspace_of(logits(chunk)) + 255) / 256 * 256;
  }

  // dbias: the columns of dlogits, padding included, summed over each chunk, and then over the
  // chunks.
  int64_t chunks() const { return (rows + chunk - 1) / chunk; }
  cuda::ChannelRows dlogits(int64_t count) const {
    return {.dtype = type, .rows = count, .channels = stride, .stored = stride};
  }
  cuda::ChannelRows chunk_sums() const {
    return {.rows = chunks(), .channels = classes, .stored = stride};
  }
  size_t sums_bytes() const { return chunks() * stride * sizeof(float); }
  size_t sums_workspace() const {
    return std::max(cuda::sum_rows_workspace(dlogits(chunk)),
                    cuda::sum_rows_workspace(chunk_sums()));
  }
};

// The loss of a row and, if there are gradients, dlogits in place of its logits: every thread reads
// its elements before it writes them.
template <typename T>
struct HeadRow {
  cuda::Labels labels;
  const float *weight, *bias;  // bias may be null
  int64_t first, stride;       // the chunk's first row
  T* logits;
  float *losses, *hits;  // hits: null if not needed
  bool gradients;
  float scale;

  __device__ float logit(const T* x, int64_t c) const {
    const float product = cuda::to_float(x[c]);
    return bias ? product + bias[c] : product;
  }

  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t i) const {
    const int64_t n = first + i;
    T* x = logits + i * stride;
    const bool counts = !labels.ignored(n) && weight[n] != 0, valid = labels.is_class(n);
    // The sums for dbias read the padding.
    for (int64_t c = labels.classes + row_threads.first(); gradients && c < stride; c += threads) {
      x[c] = cuda::from_float<T>(0);
    }
    if (!counts || !valid) {
      for (int64_t c = row_threads.first(); gradients && c < labels.classes; c += threads) {
        x[c] = cuda::from_float<T>(0);
      }
      if (row_threads.first() != 0) return;
      losses[n] = counts ? NAN : 0;
      if (hits) hits[n] = 0;
      return;
    }
    float own_largest = cuda::Max::kIdentity, own_sum = 0, own_place = 0;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float value = logit(x, c);
      if (value > own_largest) {
        own_sum = own_sum * expf(own_largest - value) + 1;
        own_largest = value;
        own_place = static_cast<float>(c);
      } else {
        own_sum += expf(value - own_largest);
      }
    }
    const float largest = row_threads.max(own_largest);
    const float sum = row_threads.sum(own_sum * expf(own_largest - largest));
    const int64_t label = labels.label[n];
    if (hits) {  // the first class with the largest logit; a float is exact below 2^24
      const float first = -row_threads.max(own_largest == largest ? -own_place : -0x1p30f);
      if (row_threads.first() == 0) hits[n] = first == static_cast<float>(label) ? 1 : 0;
    }
    // The sum above is behind a barrier: nothing has been overwritten yet, and after this thread's
    // read of the label's logit only its own thread overwrites it.
    if (row_threads.first() == label % threads) {
      losses[n] = logf(sum) - (logit(x, label) - largest);
    }
    if (!gradients) return;
    const float factor = scale * weight[n] / sum;
    for (int64_t c = row_threads.first(); c < labels.classes; c += threads) {
      const float value = expf(logit(x, c) - largest) - (c == label ? sum : 0);
      x[c] = cuda::from_float<T>(value * factor);
    }
  }
};

// loss = the sum of weight * losses, by one block in a fixed order.
__global__ void weigh_losses(cuda::Labels labels, const float* weight, const float* losses,
                             float* loss) {
  float sum = 0;
  for (int64_t n = threadIdx.x; n < labels.samples; n += cuda::kBlock) {
    if (!labels.ignored(n) && weight[n] != 0) sum += weight[n] * losses[n];
  }
  sum = cuda::block_sum<cuda::kBlock>(sum);
  if (threadIdx.x == 0) *loss = sum;
}

// Sums of dlogits, if the bias needs its gradient.
struct BiasGradient {
  float* dbias = nullptr;  // null: not needed
  float* sums = nullptr;   // [chunks, stride]
  void* workspace = nullptr;

  BiasGradient(const KernelContext& context, const CudaHeadSizes& sizes) {
    if (context.outputs.size() < 6 || !context.outputs[5]) return;
    auto* memory = static_cast<char*>(context.workspace) + sizes.products_bytes();
    dbias = context.outputs[5].as<float>();
    sums = reinterpret_cast<float*>(memory);
    workspace = memory + sizes.sums_bytes();
  }
  void add_chunk(const CudaHeadSizes& sizes, int64_t first, int64_t count, const void* dlogits,
                 Stream& stream) const {
    if (!dbias) return;
    cuda::sum_rows(sizes.dlogits(count), dlogits, sums + first / sizes.chunk * sizes.stride,
                   DType::kFloat32, workspace, cuda::stream_of(stream));
  }
  void finish(const CudaHeadSizes& sizes, Stream& stream) const {
    if (!dbias) return;
    cuda::sum_rows(sizes.chunk_sums(), sums, dbias, DType::kFloat32, workspace,
                   cuda::stream_of(stream));
  }
};

// The products of one chunk; the optional ones are null if not needed.
struct HeadChunk {
  int64_t first = 0, count = 0;
  std::shared_ptr<Kernel> logits, dhidden, dhead;
};

std::vector<HeadChunk> make_chunks(KernelContext& context, const CudaHeadSizes& sizes, char* logits,
                                   void* workspace) {
  const Argument hidden = context.inputs[0], head = context.inputs[1];
  const bool gradients = context.outputs.size() > 3;
  const Argument dhidden = gradients ? context.outputs[3] : Argument();
  const Argument dhead = gradients ? context.outputs[4] : Argument();
  const int64_t row_bytes = sizes.depth * static_cast<int64_t>(size_of(sizes.type));
  std::vector<HeadChunk> chunks;
  for (int64_t first = 0; first < sizes.rows; first += sizes.chunk) {
    HeadChunk chunk{.first = first, .count = std::min(sizes.chunk, sizes.rows - first)};
    const char* rows = hidden.as<char>() + first * row_bytes;
    chunk.logits =
        cuda::make_product(context.device, sizes.logits(chunk.count),
                           {.a = rows, .b = head.data, .d = logits, .workspace = workspace});
    if (dhidden) {
      chunk.dhidden = cuda::make_product(context.device, sizes.dhidden(chunk.count),
                                         {.a = logits,
                                          .b = head.data,
                                          .d = dhidden.as<char>() + first * row_bytes,
                                          .workspace = workspace});
    }
    if (dhead) {
      chunk.dhead =
          cuda::make_product(context.device, sizes.dhead(chunk.count, /*adds=*/first > 0),
                             {.a = logits, .b = rows, .d = dhead.data, .workspace = workspace});
    }
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

void cuda_head_layouts(LayoutQuery& query) {
  const Var &hidden = query.input_var(0), &head = query.input_var(1);
  const CudaHeadSizes sizes(query.attributes(), hidden.shape, head.shape, hidden.dtype);
  const bool sums = query.output_count() > 5 && query.has_output(5);
  query.workspace(sizes.products_bytes() +
                  (sums ? sizes.sums_bytes() + sizes.sums_workspace() : 0));
}

std::unique_ptr<Kernel> make_cuda_head_loss(KernelContext& context, double scale) {
  const CudaHeadSizes sizes(context.attributes(), context.inputs[0].shape, context.inputs[1].shape,
                            context.inputs[0].dtype);
  cuda::Labels labels(context, context.inputs[0], context.inputs[2]);
  labels.classes = sizes.classes;
  auto* logits = static_cast<char*>(context.workspace);
  const float* bias = context.inputs[4] ? context.inputs[4].as<const float>() : nullptr;
  const BiasGradient bias_gradient(context, sizes);
  const auto chunks = make_chunks(context, sizes, logits, logits + sizes.logits_bytes());
  const float* weight = context.inputs[3].as<const float>();
  float *loss = context.outputs[0].as<float>(), *losses = context.outputs[1].as<float>();
  float* hits = context.outputs[2] ? context.outputs[2].as<float>() : nullptr;
  const bool gradients = context.outputs.size() > 3;
  return cuda::dispatch(sizes.type, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](Stream& stream) {
      for (const HeadChunk& chunk : chunks) {
        chunk.logits->run(stream);
        cuda::launch_rows(cuda::stream_of(stream), chunk.count, sizes.classes,
                          HeadRow<T>{labels, weight, bias, chunk.first, sizes.stride,
                                     reinterpret_cast<T*>(logits), losses, hits, gradients,
                                     static_cast<float>(scale)});
        bias_gradient.add_chunk(sizes, chunk.first, chunk.count, logits, stream);
        if (chunk.dhead) chunk.dhead->run(stream);
        if (chunk.dhidden) chunk.dhidden->run(stream);
      }
      bias_gradient.finish(sizes, stream);
      cuda::launch(weigh_losses, 1, cuda::kBlock, 0, cuda::stream_of(stream), labels, weight,
                   losses, loss);
    });
  });
}

// to = from * dloss / scale
template <int pack, typename From, typename To>
__global__ void scale_saved_gradient(int64_t count, const From* from, const float* dloss,
                                     float scale, To* to) {
  const int64_t begin = cuda::thread_index() * pack;
  if (begin >= count) return;
  const float factor = *dloss * scale;
  cuda::Pack<float, pack> values = cuda::load_floats<pack>(from, begin);
#pragma unroll
  for (int i = 0; i < pack; ++i) values.at[i] *= factor;
  cuda::store_floats<pack>(to, begin, values);
}

void scale_saved(const Argument& from, const Argument& to, const float* dloss, float scale,
                 cudaStream_t stream) {
  if (!to) return;
  const int64_t count = to.layout.elements();
  cuda::dispatch(from.dtype, [&](auto from_type) {
    cuda::dispatch(to.dtype, [&](auto to_type) {
      using From = decltype(from_type);
      using To = decltype(to_type);
      constexpr int kPack = 4;
      const auto run = [&](auto kernel, int pack) {
        cuda::launch(kernel, cuda::blocks_for(count, cuda::kBlock * pack), cuda::kBlock, 0, stream,
                     count, from.as<const From>(), dloss, scale, to.as<To>());
      };
      if (count % kPack == 0 && cuda::is_aligned(from.data) && cuda::is_aligned(to.data)) {
        run(scale_saved_gradient<kPack, From, To>, kPack);
      } else {
        run(scale_saved_gradient<1, From, To>, 1);
      }
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, linear_cross_entropy) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda_head_layouts;
  def.create = [](KernelContext& context) { return make_cuda_head_loss(context, 1); };
}

FLEET_KERNEL(cuda, linear_cross_entropy_with_gradient) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda_head_layouts;
  def.create = [](KernelContext& context) {
    return make_cuda_head_loss(context, context.attributes().number("gradient_scale"));
  };
}

FLEET_KERNEL(cuda, linear_cross_entropy_grad) {
  def.dtypes = cuda::floating_types();
  def.create = [](KernelContext& context) {
    const std::vector<Argument> from = {context.inputs[0], context.inputs[1], context.inputs[3]};
    const std::vector<Argument> to(context.outputs.begin(), context.outputs.end());
    const float* dloss = context.inputs[2].as<const float>();
    const auto scale = static_cast<float>(1 / context.attributes().number("gradient_scale"));
    return make_kernel([=](Stream& stream) {
      for (size_t i = 0; i < from.size(); ++i) {
        scale_saved(from[i], to[i], dloss, scale, cuda::stream_of(stream));
      }
    });
  };
}

}  // namespace fleet
