// The bound of a ResNet50 training step on a CPU: all of its convolution and batch-norm(+ReLU)
// primitives alone, created once, run in network order over memory of their own in the layouts
// oneDNN prefers. No residual additions, pooling, classifier, loss or optimizer, and no reorder of
// weights for the data gradients. By Winograd's method where oneDNN has it, as the engine does.
#pragma once

#include <omp.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <vector>

#include "base/cpu.h"
#include "tensor/float16.h"
#include "tests/bench/times.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fleet::bench {

// For a busy machine and one thread: count the thread's own time.
inline bool& use_cpu_time() {
  static bool use = false;
  return use;
}

inline double seconds_now() {
  if (use_cpu_time()) {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if defined(__x86_64__)
// Chains of fused multiply-adds in registers: floating-point operations a call.
__attribute__((target("avx512f"))) inline double fma_chains_512(int64_t rounds, float* sink) {
  constexpr int kChains = 16;
  __m512 sums[kChains];
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.5f);
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_fmadd_ps(sums[k], factor, term);
  }
  float values[16];
  for (const __m512& sum : sums) {
    _mm512_storeu_ps(values, sum);
    *sink += values[0];
  }
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"))) inline double fma_chains_256(int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  __m256 sums[kChains];
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.5f);
  for (__m256& sum : sums) sum = _mm256_set1_ps(1.f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm256_fmadd_ps(sums[k], factor, term);
  }
  float values[8];
  for (const __m256& sum : sums) {
    _mm256_storeu_ps(values, sum);
    *sink += values[0];
  }
  return 2.0 * 8 * kChains * static_cast<double>(rounds);
}

// The same of pairs of bfloat16, summed in float.
__attribute__((target("avx512f,avx512bf16"))) inline double fma_chains_bf16(int64_t rounds,
                                                                            float* sink) {
  constexpr int kChains = 16;
  __m512 sums[kChains];
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
  const __m512bh y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.25f), _mm512_set1_ps(-0.25f));
  for (__m512& sum : sums) sum = _mm512_set1_ps(1.f);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], x, y);
  }
  float values[16];
  for (const __m512& sum : sums) {
    _mm512_storeu_ps(values, sum);
    *sink += values[0];
  }
  return 4.0 * 16 * kChains * static_cast<double>(rounds);
}

inline double fma_chains(int64_t rounds, bool bf16, float* sink) {
  if (bf16) return fma_chains_bf16(rounds, sink);
  return FLEET_X86_HAS("avx512f") ? fma_chains_512(rounds, sink) : fma_chains_256(rounds, sink);
}
#else
// Chains of fused multiply-adds that the compiler vectorises: floating-point operations a call. Of
// bfloat16 there are none; those of float stand in.
inline double fma_chains(int64_t rounds, bool /*bf16*/, float* sink) {
  constexpr int kLanes = 64;
  float sums[kLanes];
  for (float& sum : sums) sum = 1.f;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 64
    for (int k = 0; k < kLanes; ++k) sums[k] = __builtin_fmaf(sums[k], 0.999f, 0.5f);
  }
  for (const float sum : sums) *sink += sum;
  return 2.0 * kLanes * static_cast<double>(rounds);
}
#endif

// Multiply-adds a second of all threads together, as floating-point operations: about 20 ms.
inline double measure_peak(bool bf16 = false) {
  constexpr int64_t kRounds = 4'000'000;
  double operations = 0;
  float sink = 0;
  const double start = seconds_now();
#pragma omp parallel reduction(+ : operations, sink)
  operations += fma_chains(kRounds, bf16, &sink);
  const double seconds = seconds_now() - start;
  volatile float keep = sink;
  (void)keep;
  return operations / seconds;
}

class ResNet50Primitives {
 public:
  // type: of images, weights and their gradients; the norms' parameters are float32.
  explicit ResNet50Primitives(int64_t batch,
                              dnnl::memory::data_type type = dnnl::memory::data_type::f32)
      : batch_(batch), type_(type) {
    const Image image = make_image(3, 224, any_layout(3, 224));
    Image x = layer(image, 64, 7, 2, true);
    x = make_image(64, 56, any_layout(64, 56));  // behind the pooling
    const int blocks[] = {3, 4, 6, 3};
    for (int stage = 0; stage < 4; ++stage) {
      for (int i = 0; i < blocks[stage]; ++i)
        x = block(x, 64 << stage, stage > 0 && i == 0 ? 2 : 1);
    }
    make_gradient_buffers();
    for (auto l = layers_.rbegin(); l != layers_.rend(); ++l) add_backward(*l);
    for (Memory* m : initialised_) m->fill(random_);
  }

  // One forward and backward pass; the seconds the convolutions took are added to convolution_time.
  void run(double* convolution_time) {
    for (const Call& call : calls_) {
      const double start = seconds_now();
      dnnl_primitive_execute(call.primitive.get(), stream_.get(),
                             static_cast<int>(call.arguments.size()), call.arguments.data());
      if (call.operations > 0) *convolution_time += seconds_now() - start;
    }
  }

  // Multiplications and additions of the convolutions in one run.
  double operations() const {
    double sum = 0;
    for (const Call& call : calls_) sum += call.operations;
    return sum;
  }
  int64_t batch() const { return batch_; }

 private:
  using Desc = dnnl::memory::desc;
  static constexpr auto kFloat = dnnl::memory::data_type::f32;
  static constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  static constexpr auto kAny = dnnl::memory::format_tag::any;

  struct Memory {
    dnnl::memory memory;
    double scale = 1;  // of its initial values
    void fill(std::mt19937& random) {
      std::normal_distribution<float> normal(0, static_cast<float>(scale));
      std::vector<float> some(4099);
      for (float& value : some) value = normal(random);
      if (memory.get_desc().data.data_type == dnnl_bf16) {
        repeat(std::vector<BFloat16>(some.begin(), some.end()));
      } else {
        repeat(some);
      }
    }
    template <typename T>
    void repeat(const std::vector<T>& some) {
      T* data = static_cast<T*>(memory.get_data_handle());
      const size_t count = memory.get_desc().get_size() / sizeof(T);
      for (size_t i = 0; i < count; ++i) data[i] = some[i % some.size()];
    }
  };

  struct Image {
    int64_t channels, size;
    Memory* memory;
  };

  struct Layer {
    Image x, y;  // y: of the convolution
    int64_t kernel, stride;
    bool relu, first;
    dnnl::algorithm method;
    dnnl::convolution_forward::primitive_desc convolution;
    dnnl::batch_normalization_forward::primitive_desc norm;
    Memory *scale, *shift, *mean, *variance, *mask;
  };

  struct Call {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    double operations = 0;
  };

  Desc any_layout(int64_t channels, int64_t size) const {
    return {{batch_, channels, size, size}, type_, kAny};
  }

  Memory* make_memory(const Desc& desc, double scale) {
    memories_.push_back(std::make_unique<Memory>(
        Memory{dnnl::memory(desc, engine_, allocate(desc.get_size())), scale}));
    if (desc.data.data_type == dnnl_f32 || desc.data.data_type == dnnl_bf16)
      initialised_.push_back(memories_.back().get());
    return memories_.back().get();
  }

  // In huge pages, as the engine's own memory.
  void* allocate(size_t bytes) {
    constexpr size_t kHugePage = size_t{2} << 20;
    const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
    const size_t size = (bytes + alignment - 1) / alignment * alignment;
    blocks_.emplace_back(std::aligned_alloc(alignment, size), std::free);
    if (alignment == kHugePage) ::madvise(blocks_.back().get(), size, MADV_HUGEPAGE);
    std::memset(blocks_.back().get(), 0, size);
    return blocks_.back().get();
  }

  // Memory is made when the first convolution that reads it says how it wants it.
  Image make_image(int64_t channels, int64_t size, const Desc& desc) {
    return {channels, size,
            desc.data.format_kind == dnnl_format_kind_any ? nullptr : make_memory(desc, 1)};
  }

  void add_call(const dnnl::primitive_desc_base& desc, std::vector<std::pair<int, Memory*>> values,
                double operations) {
    Call call{dnnl::primitive(desc.get()), {}, operations};
    if (desc.scratchpad_desc().get_size() > 0) {
      values.emplace_back(DNNL_ARG_SCRATCHPAD, make_memory(desc.scratchpad_desc(), 0));
    }
    for (const auto& [argument, memory] : values) {
      call.arguments.push_back({argument, memory->memory.get()});
    }
    calls_.push_back(std::move(call));
  }

  double operations_of(const Layer& layer) const {
    return 2.0 * static_cast<double>(batch_ * layer.y.size * layer.y.size * layer.y.channels *
                                     layer.x.channels * layer.kernel * layer.kernel);
  }

  Desc weights(const Layer& l) const {
    return {{l.y.channels, l.x.channels, l.kernel, l.kernel}, type_, kAny};
  }

  // Convolution and batch norm, forward.
  Image layer(Image x, int64_t channels, int64_t kernel, int64_t stride, bool relu) {
    const int64_t size = (x.size - 1) / stride + 1, padding = kernel / 2;
    Layer l{.x = x,
            .y = {channels, size, nullptr},
            .kernel = kernel,
            .stride = stride,
            .relu = relu,
            .first = layers_.empty()};
    const Desc x_desc = x.memory ? x.memory->memory.get_desc() : any_layout(x.channels, x.size);
    for (const dnnl::algorithm method : {dnnl::algorithm::convolution_winograd, kDirect}) {
      const dnnl::convolution_forward::desc convolution(
          dnnl::prop_kind::forward_training, method, x_desc, weights(l), any_layout(channels, size),
          {stride, stride}, {padding, padding}, {padding, padding});
      l.convolution = {convolution, attributes_, engine_, /*allow_empty=*/true};
      l.method = method;
      if (l.convolution) break;
    }
    if (!x.memory) l.x.memory = make_memory(l.convolution.src_desc(), 1);
    l.y.memory = make_memory(l.convolution.dst_desc(), 1);
    const double deviation = std::sqrt(2.0 / static_cast<double>(channels * kernel * kernel));
    add_call(l.convolution,
             {{DNNL_ARG_SRC, l.x.memory},
              {DNNL_ARG_WEIGHTS, make_memory(l.convolution.weights_desc(), deviation)},
              {DNNL_ARG_DST, l.y.memory}},
             operations_of(l));
    const Image out = add_norm(l);
    last_input_ = l.x;
    layers_.push_back(l);
    return out;
  }

  Image add_norm(Layer& l) {
    using dnnl::normalization_flags;
    normalization_flags flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (l.relu) flags |= normalization_flags::fuse_norm_relu;
    const dnnl::batch_normalization_forward::desc norm(dnnl::prop_kind::forward_training,
                                                       l.convolution.dst_desc(), 1e-5f, flags);
    l.norm = {norm, attributes_, engine_};
    const Desc channels({l.y.channels}, kFloat, dnnl::memory::format_tag::x);
    for (Memory** m : {&l.scale, &l.shift, &l.mean, &l.variance}) *m = make_memory(channels, 1);
    const Image out{l.y.channels, l.y.size, make_memory(l.norm.dst_desc(), 1)};
    std::vector<std::pair<int, Memory*>> values = {
        {DNNL_ARG_SRC, l.y.memory}, {DNNL_ARG_SCALE, l.scale},       {DNNL_ARG_SHIFT, l.shift},
        {DNNL_ARG_MEAN, l.mean},    {DNNL_ARG_VARIANCE, l.variance}, {DNNL_ARG_DST, out.memory}};
    if (l.relu) {
      l.mask = make_memory(l.norm.workspace_desc(), 0);
      values.emplace_back(DNNL_ARG_WORKSPACE, l.mask);
    }
    add_call(l.norm, values, 0);
    return out;
  }

  Image block(Image x, int64_t width, int64_t stride) {
    Image y = layer(x, width, 1, 1, true);
    const Image input = last_input_;  // now with memory
    y = layer(y, width, 3, stride, true);
    y = layer(y, 4 * width, 1, 1, false);
    if (input.channels != y.channels) layer(input, 4 * width, 1, stride, false);
    return y;
  }

  void make_gradient_buffers() {
    size_t bytes = 0;
    for (const Layer& l : layers_) {
      bytes = std::max({bytes, l.convolution.dst_desc().get_size(),
                        l.first ? 0 : l.convolution.src_desc().get_size()});
    }
    const auto count = static_cast<int64_t>(bytes / dnnl::memory::data_type_size(type_));
    for (Memory*& m : gradients_) {
      m = make_memory(Desc({count}, type_, dnnl::memory::format_tag::x), 1);
    }
  }

  // One of three buffers in turn, in this form.
  Memory* gradient(const Desc& desc, int turn) {
    memories_.push_back(std::make_unique<Memory>(
        Memory{dnnl::memory(desc, engine_, gradients_[turn % 3]->memory.get_data_handle())}));
    return memories_.back().get();
  }

  void add_backward(const Layer& l) {
    const Desc y = l.convolution.dst_desc();
    Memory *da = gradient(y, turn_), *dy = gradient(y, turn_ + 1);
    add_norm_backward(l, da, dy);
    const int64_t padding = l.kernel / 2;
    const dnnl::memory::dims strides = {l.stride, l.stride}, paddings = {padding, padding};
    const dnnl::convolution_backward_weights::desc by_weights(
        l.method, l.convolution.src_desc(), weights(l), y, strides, paddings, paddings);
    const dnnl::convolution_backward_weights::primitive_desc weight_desc(by_weights, attributes_,
                                                                         engine_, l.convolution);
    add_call(weight_desc,
             {{DNNL_ARG_SRC, l.x.memory},
              {DNNL_ARG_DIFF_DST, dy},
              {DNNL_ARG_DIFF_WEIGHTS, make_memory(weight_desc.diff_weights_desc(), 0)}},
             operations_of(l));
    if (l.first) return;
    const dnnl::convolution_backward_data::desc by_data(l.method, l.convolution.src_desc(),
                                                        weights(l), y, strides, paddings, paddings);
    const dnnl::convolution_backward_data::primitive_desc data_desc(by_data, attributes_, engine_,
                                                                    l.convolution);
    const double deviation =
        std::sqrt(2.0 / static_cast<double>(l.y.channels * l.kernel * l.kernel));
    add_call(data_desc,
             {{DNNL_ARG_WEIGHTS, make_memory(data_desc.weights_desc(), deviation)},
              {DNNL_ARG_DIFF_DST, dy},
              {DNNL_ARG_DIFF_SRC, gradient(data_desc.diff_src_desc(), turn_ + 2)}},
             operations_of(l));
    turn_ += 2;
  }

  void add_norm_backward(const Layer& l, Memory* da, Memory* dy) {
    const dnnl::batch_normalization_backward::desc norm(
        dnnl::prop_kind::backward, l.convolution.dst_desc(), l.convolution.dst_desc(), 1e-5f,
        static_cast<dnnl::normalization_flags>(dnnl_use_scale | dnnl_use_shift |
                                               (l.relu ? dnnl_fuse_norm_relu : 0)));
    const dnnl::batch_normalization_backward::primitive_desc desc(norm, attributes_, engine_,
                                                                  l.norm);
    const Desc channels({l.y.channels}, kFloat, dnnl::memory::format_tag::x);
    std::vector<std::pair<int, Memory*>> values = {{DNNL_ARG_SRC, l.y.memory},
                                                   {DNNL_ARG_SCALE, l.scale},
                                                   {DNNL_ARG_SHIFT, l.shift},
                                                   {DNNL_ARG_MEAN, l.mean},
                                                   {DNNL_ARG_VARIANCE, l.variance},
                                                   {DNNL_ARG_DIFF_DST, da},
                                                   {DNNL_ARG_DIFF_SCALE, make_memory(channels, 0)},
                                                   {DNNL_ARG_DIFF_SHIFT, make_memory(channels, 0)},
                                                   {DNNL_ARG_DIFF_SRC, dy}};
    if (l.relu) values.emplace_back(DNNL_ARG_WORKSPACE, l.mask);
    add_call(desc, values, 0);
  }

  static dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  int64_t batch_;
  dnnl::memory::data_type type_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive_attr attributes_ = user_scratchpad();
  std::mt19937 random_{1};
  std::vector<std::shared_ptr<void>> blocks_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<Memory*> initialised_;
  std::vector<Layer> layers_;
  std::vector<Call> calls_;
  Image last_input_{};
  Memory* gradients_[3] = {};
  int turn_ = 0;
};

}  // namespace fleet::bench
