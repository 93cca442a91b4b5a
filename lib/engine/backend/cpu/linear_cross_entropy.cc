// linear_cross_entropy, and the same with gradients. Rows that count are gathered, unless all of a
// chunk do; so the work of the products is theirs only.
#include "ops/linear_cross_entropy.h"

#include <bit>
#include <cmath>

#include "backend/cpu/labels.h"
#include "backend/cpu/runtime_product.h"
#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

using cpu::RuntimeProduct;

// The workspace: the numbers of the rows that count, the logits of a chunk, and its rows of hidden
// and dhidden in float32 or in the type of hidden.
struct HeadWorkspace {
  int64_t* counted;
  float *logits, *rows;

  HeadWorkspace(const HeadSizes& sizes, void* memory)
      : counted(static_cast<int64_t*>(memory)),
        logits(reinterpret_cast<float*>(static_cast<char*>(memory) + padded(sizes.rows * 8))),
        rows(logits + sizes.chunk * sizes.stride) {}
  static size_t bytes(const HeadSizes& sizes) {
    return padded(sizes.rows * 8) + sizes.chunk * (sizes.stride + sizes.depth) * sizeof(float);
  }
  static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
};

// Replaces the logits by exp(logit - largest); returns their sum.
FLEET_SIMD float exponentials(float* x, int64_t classes, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) {
    x[c] = cpu::fast_exp(x[c] - largest);
    sum += x[c];
  }
  return sum;
}

FLEET_SIMD float sum_of_exponentials(const float* x, int64_t classes, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) sum += cpu::fast_exp(x[c] - largest);
  return sum;
}

FLEET_SIMD float largest_of(const float* x, int64_t classes) { return cpu::row_max(x, classes); }

FLEET_SIMD void scale_row(float* x, int64_t classes, float factor) {
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) x[c] *= factor;
}

// The row in bfloat16 in the first half of its own memory: each write comes after its read.
FLEET_SIMD void scale_and_narrow_row(float* x, int64_t classes, float factor) {
  using Pattern [[gnu::may_alias]] = uint16_t;
  constexpr int64_t kBlock = 256;
  float block[kBlock];
  auto* narrow = reinterpret_cast<Pattern*>(x);
  for (int64_t begin = 0; begin < classes; begin += kBlock) {
    const int64_t count = std::min(kBlock, classes - begin);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) block[i] = x[begin + i] * factor;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      uint32_t bits;
      narrow_to_bfloat16(std::bit_cast<uint32_t>(block[i]), bits);
      narrow[begin + i] = static_cast<uint16_t>(bits);
    }
  }
}

FLEET_SIMD void add_row(float* x, const float* more, int64_t count) {
#pragma omp simd
  for (int64_t c = 0; c < count; ++c) x[c] += more[c];
}

// sums[c] += the sum of x[row][c] over the rows, in order; x in the type T.
template <typename T>
FLEET_SIMD void add_columns_of(const T* x, int64_t rows, int64_t stride, int64_t columns,
                               float* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = x + row * stride;
#pragma omp simd
    for (int64_t c = 0; c < columns; ++c) sums[c] += static_cast<float>(from[c]);
  }
}

class HeadLoss : public Kernel {
 public:
  HeadLoss(KernelContext& context, double gradient_scale)
      : sizes_(context.attributes(), context.inputs[0].shape, context.inputs[1].shape,
               context.inputs[0].dtype),
        labels_(label_arguments(context)),
        work_(sizes_, context.workspace),
        scale_(static_cast<float>(gradient_scale)),
        hidden_(context.inputs[0].as<char>()),
        head_(context.inputs[1].data),
        weight_(context.inputs[3].as<float>()),
        bias_(context.inputs[4] ? context.inputs[4].as<const float>() : nullptr),
        loss_(context.outputs[0].as<float>()),
        losses_(context.outputs[1].as<float>()),
        hits_(context.outputs[2] ? context.outputs[2].as<float>() : nullptr),
        logits_(RuntimeProduct::kRows, sizes_.classes, sizes_.depth, rows_of(sizes_.type),
                {sizes_.type, {1, sizes_.depth}}, {DType::kFloat32, {sizes_.stride, 1}}) {
    if (context.outputs.size() < 4) return;
    if (const Argument& dbias = context.outputs[5]) dbias_ = dbias.as<float>();
    const RuntimeProduct::Matrix dlogits{sizes_.type, {dlogits_stride(), 1}};
    if (const Argument& dhidden = context.outputs[3]) {
      dhidden_ = dhidden.as<char>();
      dhidden_product_.emplace(RuntimeProduct::kRows, sizes_.depth, sizes_.classes, dlogits,
                               rows_of(sizes_.type), rows_of(DType::kFloat32));
    }
    if (const Argument& dhead = context.outputs[4]) {
      dhead_ = dhead.data;
      dhead_bytes_ = dhead.bytes();
      const RuntimeProduct::Matrix transposed{sizes_.type, {1, dlogits_stride()}};
      for (const bool adds : {false, true}) {
        dhead_products_.emplace_back(RuntimeProduct::kDepth, sizes_.classes, sizes_.depth,
                                     transposed, rows_of(sizes_.type), rows_of(dhead.dtype), adds);
      }
    }
  }

  void run(Stream&) override {
    const int64_t count = find_rows();
    if (dhead_ && count == 0) std::memset(dhead_, 0, dhead_bytes_);
    if (dbias_) std::fill_n(dbias_, sizes_.classes, 0.0f);
    // Equal chunks: a last one of a few rows would run slowly.
    const int64_t chunks = (count + sizes_.chunk - 1) / sizes_.chunk;
    for (int64_t k = 0; k < chunks; ++k) {
      run_chunk(count * k / chunks, count * (k + 1) / chunks);
    }
    double sum = 0;
    for (int64_t n = 0; n < sizes_.rows; ++n) {
      if (counts(n)) sum += double{weight_[n]} * double{losses_[n]};
    }
    *loss_ = static_cast<float>(sum);
  }

 private:
  static cpu::Labels label_arguments(const KernelContext& context) {
    cpu::Labels labels(context, context.inputs[0], context.inputs[2]);
    labels.classes = context.inputs[1].shape[0];
    return labels;
  }
  RuntimeProduct::Matrix rows_of(DType dtype) const { return {dtype, {sizes_.depth, 1}}; }
  // dlogits overwrite the logits.
  int64_t dlogits_stride() const {
    return sizes_.stride * static_cast<int64_t>(sizeof(float) / size_of(sizes_.type));
  }
  int64_t row_bytes() const { return sizes_.depth * static_cast<int64_t>(size_of(sizes_.type)); }
  bool counts(int64_t n) const { return !labels_.ignored(n) && weight_[n] != 0; }

  // Lists the rows that count and clears the results of the others.
  int64_t find_rows() {
    int64_t count = 0;
    for (int64_t n = 0; n < sizes_.rows; ++n) {
      if (counts(n)) {
        labels_.check_one(n, "linear_cross_entropy");
        work_.counted[count++] = n;
        continue;
      }
      losses_[n] = 0;
      if (hits_) hits_[n] = 0;
      if (dhidden_) std::memset(dhidden_ + n * row_bytes(), 0, row_bytes());
    }
    return count;
  }

  void run_chunk(int64_t begin, int64_t end) {
    const int64_t count = end - begin, first = work_.counted[begin];
    const bool together = work_.counted[end - 1] - first == count - 1;
    const char* rows = hidden_ + first * row_bytes();
    if (!together) {
      gather(begin, count);
      rows = reinterpret_cast<const char*>(work_.rows);
    }
    logits_.run(count, rows, head_, work_.logits);
#pragma omp parallel for if (count * sizes_.classes >= cpu::kParallelElements)
    for (int64_t i = 0; i < count; ++i) {
      finish_row(work_.logits + i * sizes_.stride, work_.counted[begin + i]);
    }
    if (dbias_) sum_bias_gradient(count);
    if (dhead_) dhead_products_[begin == 0 ? 0 : 1].run(count, work_.logits, rows, dhead_);
    if (!dhidden_) return;
    const bool in_place = together && sizes_.type == DType::kFloat32;
    char* target = dhidden_ + first * row_bytes();
    dhidden_product_->run(count, work_.logits, head_,
                          in_place ? static_cast<void*>(target) : work_.rows);
    if (!in_place) scatter(begin, count);
  }

  // The loss of a row, and dlogits in place of its logits if there are gradients.
  void finish_row(float* x, int64_t n) const {
    const int64_t classes = sizes_.classes, label = labels_.label[n];
    if (bias_) add_row(x, bias_, classes);
    const float largest = largest_of(x, classes), own = x[label] - largest;
    if (hits_) hits_[n] = own == 0 && std::find(x, x + label, largest) == x + label ? 1 : 0;
    const bool gradients = dhidden_ || dhead_ || dbias_;
    const float sum =
        gradients ? exponentials(x, classes, largest) : sum_of_exponentials(x, classes, largest);
    losses_[n] = static_cast<float>(std::log(double{sum}) - double{own});
    if (!gradients) return;
    x[label] -= sum;
    const float factor = scale_ * weight_[n] / sum;
    if (sizes_.type == DType::kFloat32) {
      scale_row(x, classes, factor);
    } else {
      scale_and_narrow_row(x, classes, factor);
    }
  }

  // Each thread sums some columns of dlogits, so that the order of the rows is the same for all.
  void sum_bias_gradient(int64_t count) const {
    constexpr int64_t kColumns = 1024;
    const int64_t classes = sizes_.classes;
    cpu::with_loop_type(sizes_.type, [&]<typename T>(T) {
      const T* dlogits = reinterpret_cast<const T*>(work_.logits);
#pragma omp parallel for if (count * classes >= cpu::kParallelElements)
      for (int64_t begin = 0; begin < classes; begin += kColumns) {
        add_columns_of(dlogits + begin, count, dlogits_stride(),
                       std::min(kColumns, classes - begin), dbias_ + begin);
      }
    });
  }

  void gather(int64_t begin, int64_t count) {
    const int64_t bytes = row_bytes();
    char* to = reinterpret_cast<char*>(work_.rows);
#pragma omp parallel for if (count * sizes_.depth >= cpu::kParallelElements)
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * bytes, hidden_ + work_.counted[begin + i] * bytes, bytes);
    }
  }

  void scatter(int64_t begin, int64_t count) {
    cpu::with_loop_type(sizes_.type, [&]<typename T>(T) {
      T* to = reinterpret_cast<T*>(dhidden_);
#pragma omp parallel for if (count * sizes_.depth >= cpu::kParallelElements)
      for (int64_t i = 0; i < count; ++i) {
        const float* from = work_.rows + i * sizes_.depth;
        T* row = to + work_.counted[begin + i] * sizes_.depth;
        for (int64_t d = 0; d < sizes_.depth; ++d) row[d] = from[d];
      }
    });
  }

  const HeadSizes sizes_;
  const cpu::Labels labels_;
  const HeadWorkspace work_;
  const float scale_;
  const char* hidden_;
  const void* head_;
  const float *weight_, *bias_;  // bias_ may be null
  float *loss_, *losses_, *hits_;
  // These, and hits_: null if not needed.
  char* dhidden_ = nullptr;
  void* dhead_ = nullptr;
  float* dbias_ = nullptr;
  size_t dhead_bytes_ = 0;
  RuntimeProduct logits_;
  std::optional<RuntimeProduct> dhidden_product_;
  // For the first chunk, and for the other chunks, which are added.
  std::vector<RuntimeProduct> dhead_products_;
};

void head_layouts(LayoutQuery& query) {
  const Var &hidden = query.input_var(0), &head = query.input_var(1);
  query.workspace(
      HeadWorkspace::bytes(HeadSizes(query.attributes(), hidden.shape, head.shape, hidden.dtype)));
}

std::unique_ptr<Kernel> make_head_loss(KernelContext& context, double scale) {
  const std::string what = context.op.type() + " of " + context.inputs[0].shape.text() + " and " +
                           context.inputs[1].shape.text();
  return cpu::translated(what, [&] { return std::make_unique<HeadLoss>(context, scale); });
}

// to = from * factor; nothing if that changes nothing.
void scale_saved(const Argument& from, const Argument& to, float factor) {
  if (!to || (from.data == to.data && factor == 1)) return;
  cpu::with_loop_type(from.dtype, [&]<typename From>(From) {
    cpu::with_loop_type(to.dtype, [&]<typename To>(To) {
      const From* x = from.as<From>();
      To* y = to.as<To>();
      cpu::parallel_ranges(to.layout.elements(), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(x[i]) * factor;
      });
    });
  });
}

}  // namespace

FLEET_KERNEL(cpu, linear_cross_entropy) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = head_layouts;
  def.create = [](KernelContext& context) { return make_head_loss(context, 1); };
}

FLEET_KERNEL(cpu, linear_cross_entropy_with_gradient) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = head_layouts;
  def.create = [](KernelContext& context) {
    return make_head_loss(context, context.attributes().number("gradient_scale"));
  };
}

FLEET_KERNEL(cpu, linear_cross_entropy_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const std::vector<Argument> from = {context.inputs[0], context.inputs[1], context.inputs[3]};
    const std::vector<Argument> to(context.outputs.begin(), context.outputs.end());
    const float* dloss = context.inputs[2].as<float>();
    const double scale = context.attributes().number("gradient_scale");
    return make_kernel([=](Stream&) {
      const auto factor = static_cast<float>(double{*dloss} / scale);
      for (size_t i = 0; i < from.size(); ++i) scale_saved(from[i], to[i], factor);
    });
  };
}

}  // namespace fleet
