#include "backend/cpu/simd_math.h"
#include "backend/cpu/thread_scratch.h"
#include "ops/image_windows.h"

namespace fleet {
namespace {

struct WindowSizes {
  ImageWindows windows;
  int64_t samples, heads, tokens;  // samples: windows of the batch
  float scale;

  WindowSizes(const Attributes& attributes, const Shape& scores)
      : windows(image_windows(attributes)),
        samples(scores[0]),
        heads(scores[1]),
        tokens(scores[2]),
        scale(static_cast<float>(attributes.number("scale"))) {}
  int64_t square() const { return tokens * tokens; }
  bool parallel() const { return samples * heads * square() >= cpu::kParallelElements; }
};

// The bias of each pair of tokens, [heads, T, T], and in a rolled image the regions of each
// window's tokens, [windows, T].
struct WindowBias {
  float *bias, *regions;
  WindowBias(void* workspace, const WindowSizes& sizes)
      : bias(static_cast<float*>(workspace)), regions(bias + sizes.heads * sizes.square()) {}
  static size_t bytes(const WindowSizes& sizes) {
    const int64_t regions = sizes.windows.shifted() ? sizes.windows.count() * sizes.tokens : 0;
    return static_cast<size_t>(sizes.heads * sizes.square() + regions) * sizeof(float);
  }
  void find_regions(const WindowSizes& sizes) const {
    if (!sizes.windows.shifted()) return;
    for (int64_t window = 0; window < sizes.windows.count(); ++window) {
      for (int64_t token = 0; token < sizes.tokens; ++token) {
        regions[window * sizes.tokens + token] =
            static_cast<float>(sizes.windows.region(window, token));
      }
    }
  }
  // table: [offsets, heads]
  void spread(const WindowSizes& sizes, const float* table) const {
#pragma omp parallel for if (sizes.parallel())
    for (int64_t query = 0; query < sizes.tokens; ++query) {
      for (int64_t key = 0; key < sizes.tokens; ++key) {
        const float* from = table + sizes.windows.offset(query, key) * sizes.heads;
        float* to = bias + query * sizes.tokens + key;
        for (int64_t head = 0; head < sizes.heads; ++head) to[head * sizes.square()] = from[head];
      }
    }
  }
};

// regions: of the keys, or null; own: that of the query. row: scratch.
template <typename T>
FLEET_SIMD void soften_window_row(const T* scores, const float* bias, const float* regions,
                                  float own, float scale, int64_t count, float* row, T* y) {
  if (regions) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const float mask = regions[i] == own ? 0.0f : kOtherRegion;
      row[i] = static_cast<float>(scores[i]) * scale + bias[i] + mask;
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) row[i] = static_cast<float>(scores[i]) * scale + bias[i];
  }
  const float largest = cpu::row_max(row, count);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    row[i] = cpu::fast_exp(row[i] - largest);
    sum += row[i];
  }
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = row[i] * factor;
}

// Adds ds to sums.
template <typename T>
FLEET_SIMD void window_row_gradient(const T* y, const T* dy, float scale, int64_t count,
                                    float* sums, T* dscores) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < count; ++i) dot += static_cast<float>(y[i]) * static_cast<float>(dy[i]);
  if (!dscores) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      sums[i] += static_cast<float>(y[i]) * (static_cast<float>(dy[i]) - dot);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float ds = static_cast<float>(y[i]) * (static_cast<float>(dy[i]) - dot);
    sums[i] += ds;
    dscores[i] = ds * scale;
  }
}

constexpr int64_t kWindowRows = 8;  // parts of the rows of a head, each a task

template <typename T>
struct WindowGradient {
  WindowSizes sizes;
  const T *y, *dy;
  T* dscores;
  float *dtable, *sums;  // dtable may be null; sums: [heads, T, T]

  void run() const {
#pragma omp parallel for schedule(dynamic) if (sizes.parallel())
    for (int64_t task = 0; task < sizes.heads * kWindowRows; ++task) {
      const int64_t part = task % kWindowRows;
      sum_rows(task / kWindowRows, sizes.tokens * part / kWindowRows,
               sizes.tokens * (part + 1) / kWindowRows);
    }
    if (!dtable) return;
    std::fill_n(dtable, sizes.windows.offsets() * sizes.heads, 0.0f);
#pragma omp parallel for if (sizes.parallel())
    for (int64_t head = 0; head < sizes.heads; ++head) {
      const float* from = sums + head * sizes.square();
      for (int64_t query = 0; query < sizes.tokens; ++query) {
        for (int64_t key = 0; key < sizes.tokens; ++key) {
          dtable[sizes.windows.offset(query, key) * sizes.heads + head] += *from++;
        }
      }
    }
  }

 private:
  void sum_rows(int64_t head, int64_t begin, int64_t end) const {
    const int64_t tokens = sizes.tokens;
    float* own = sums + head * sizes.square();
    std::fill(own + begin * tokens, own + end * tokens, 0.0f);
    for (int64_t sample = 0; sample < sizes.samples; ++sample) {
      const int64_t at = (sample * sizes.heads + head) * sizes.square();
      for (int64_t row = begin * tokens; row < end * tokens; row += tokens) {
        window_row_gradient(y + at + row, dy + at + row, sizes.scale, tokens, own + row,
                            dscores ? dscores + at + row : nullptr);
      }
    }
  }
};

}  // namespace

FLEET_KERNEL(cpu, window_softmax) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    query.workspace(WindowBias::bytes({query.attributes(), query.input_var(0).shape}));
  };
  def.create = [](KernelContext& context) {
    const WindowSizes sizes(context.attributes(), context.inputs[0].shape);
    const WindowBias bias(context.workspace, sizes);
    const float* table = context.inputs[1].as<float>();
    return cpu::with_loop_type(context.outputs[0].dtype, [&]<typename T>(T) {
      const T* scores = context.inputs[0].as<T>();
      T* y = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        bias.spread(sizes, table);
        bias.find_regions(sizes);
#pragma omp parallel for if (sizes.parallel())
        for (int64_t matrix = 0; matrix < sizes.samples * sizes.heads; ++matrix) {
          auto* row = reinterpret_cast<float*>(
              cpu::thread_scratch(sizes.tokens * static_cast<int64_t>(sizeof(float))));
          const int64_t window = matrix / sizes.heads % sizes.windows.count();
          const float* regions =
              sizes.windows.shifted() ? bias.regions + window * sizes.tokens : nullptr;
          const float* own = bias.bias + matrix % sizes.heads * sizes.square();
          for (int64_t query = 0; query < sizes.tokens; ++query) {
            const int64_t at = matrix * sizes.square() + query * sizes.tokens;
            soften_window_row(scores + at, own + query * sizes.tokens, regions,
                              regions ? regions[query] : 0, sizes.scale, sizes.tokens, row, y + at);
          }
        }
      });
    });
  };
}

FLEET_KERNEL(cpu, window_softmax_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const WindowSizes sizes(query.attributes(), query.input_var(0).shape);
    query.workspace(static_cast<size_t>(sizes.heads * sizes.square()) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const WindowGradient<T> gradient{.sizes = {context.attributes(), context.inputs[0].shape},
                                       .y = context.inputs[0].as<T>(),
                                       .dy = context.inputs[2].as<T>(),
                                       .dscores = context.outputs[0].as<T>(),
                                       .dtable = context.outputs[1].as<float>(),
                                       .sums = static_cast<float*>(context.workspace)};
      return make_kernel([=](Stream&) { gradient.run(); });
    });
  };
}

}  // namespace fleet
