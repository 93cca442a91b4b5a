#include "backend/cpu/optim_chunks.h"
#include "ops/partial_squares.h"
#include "tensor/float16.h"

namespace fleet {
namespace {

template <typename T>
FLEET_INLINE double add_squares(const void* data, int64_t count) {
  const T* x = static_cast<const T*>(data);
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(x[i]);
    total += static_cast<double>(value) * value;
  }
  return total;
}

FLEET_SIMD double of_float32(const void* x, int64_t count) { return add_squares<float>(x, count); }
FLEET_SIMD double of_bfloat16(const void* x, int64_t count) {
  return add_squares<BFloat16>(x, count);
}
FLEET_SIMD double of_float16(const void* x, int64_t count) {
  return add_squares<Float16>(x, count);
}

double sum_of_squares(const cpu::TypedChunk& chunk) {
  switch (chunk.dtype) {
    case DType::kBFloat16:
      return of_bfloat16(chunk.data, chunk.count);
    case DType::kFloat16:
      return of_float16(chunk.data, chunk.count);
    default:
      return of_float32(chunk.data, chunk.count);
  }
}

}  // namespace

FLEET_KERNEL(cpu, sum_of_squares) {
  def.dtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  def.layouts = [](LayoutQuery& query) {
    query.workspace(static_cast<size_t>(cpu::keep_input_layouts(query)) * sizeof(double));
  };
  def.create = [](KernelContext& context) {
    std::vector<cpu::TypedChunk> chunks;
    for (const Argument& input : context.inputs) cpu::append_typed_chunks(chunks, input);
    double* partial = static_cast<double*>(context.workspace);
    float* out = context.outputs[0].as<float>();
    return make_kernel([=, chunks = std::move(chunks)](Stream&) {
      const int64_t count = static_cast<int64_t>(chunks.size());
#pragma omp parallel for if (count > 1)
      for (int64_t i = 0; i < count; ++i) partial[i] = sum_of_squares(chunks[i]);
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += partial[i];
      *out = static_cast<float>(sum);
    });
  };
}

FLEET_KERNEL(cpu, partial_squares) {
  static_assert(kSquaresPart == cpu::kReduceElements);
  def.dtypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  def.create = [](KernelContext& context) {
    std::vector<cpu::TypedChunk> chunks;
    cpu::append_typed_chunks(chunks, context.inputs[0]);
    double* parts = context.outputs[0].as<double>();
    return make_kernel([=, chunks = std::move(chunks)](Stream&) {
      const int64_t count = static_cast<int64_t>(chunks.size());
#pragma omp parallel for if (count > 1)
      for (int64_t i = 0; i < count; ++i) parts[i] = sum_of_squares(chunks[i]);
    });
  };
}

FLEET_KERNEL(cpu, sum_partials) {
  def.dtypes = {DType::kFloat64};
  def.create = [](KernelContext& context) {
    const double* parts = context.inputs[0].as<double>();
    const int64_t count = context.inputs[0].shape.elements();
    float* out = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += parts[i];
      *out = static_cast<float>(sum);
    });
  };
}

}  // namespace fleet
