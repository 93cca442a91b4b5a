#include "comm/reduce.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/cpu.h"
#include "tensor/float16.h"

// 64-byte vectors stay inside always-inlined functions, so no ABI depends on them.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace fleet {
namespace {

// One vector of 16 lanes of the compute type, with its load and store. Written with vector
// extensions: the compiler lowers them to the instruction set of the function they are inlined
// into.
template <typename T, int kLanesOf>
struct Plain {
  static constexpr int kLanes = kLanesOf;
  using Element = T;
  typedef T Vector __attribute__((vector_size(kLanesOf * sizeof(T))));
  FLEET_INLINE static void load(const T* from, Vector& to) { std::memcpy(&to, from, sizeof to); }
  FLEET_INLINE static void store(T* to, const Vector& from) { std::memcpy(to, &from, sizeof from); }
};

typedef float Floats __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

// 16-bit elements, computed in float.
struct LowLanes {
  static constexpr int kLanes = 16;
  using Element = uint16_t;
  using Vector = Floats;
  FLEET_INLINE static void load_words(const uint16_t* from, Words& to) {
    Halves half;
    std::memcpy(&half, from, sizeof half);
    to = __builtin_convertvector(half, Words);
  }
  FLEET_INLINE static void store_words(uint16_t* to, const Words& from) {
    const Halves half = __builtin_convertvector(from, Halves);
    std::memcpy(to, &half, sizeof half);
  }
};

struct BFloat16Lanes : LowLanes {
  FLEET_INLINE static void load(const uint16_t* from, Vector& to) {
    Words bits;
    load_words(from, bits);
    to = reinterpret_cast<Floats>(bits << 16);
  }
  FLEET_INLINE static void store(uint16_t* to, const Vector& from) {
    Words bits;
    narrow_to_bfloat16(reinterpret_cast<Words>(from), bits);
    store_words(to, bits);
  }
};

struct Float16Lanes : LowLanes {
  FLEET_INLINE static void load(const uint16_t* from, Vector& to) {
    Words narrow, wide;
    load_words(from, narrow);
    widen_float16<Floats>(narrow, wide);
    to = reinterpret_cast<Floats>(wide);
  }
  FLEET_INLINE static void store(uint16_t* to, const Vector& from) {
    Words bits;
    narrow_to_float16<Floats>(reinterpret_cast<Words>(from), bits);
    store_words(to, bits);
  }
};

template <ReduceOp op, typename Vector>
FLEET_INLINE void combine(Vector& a, const Vector& b) {
  if constexpr (op == ReduceOp::kSum) a = a + b;
  if constexpr (op == ReduceOp::kMin) a = b < a ? b : a;
  if constexpr (op == ReduceOp::kMax) a = a < b ? b : a;
}

// Elements [first, first + U vectors) of all ins into all outs.
template <typename F, ReduceOp op, int U>
FLEET_INLINE void step(typename F::Element* const* out, int n_out,
                       const typename F::Element* const* in, int n_in, size_t first) {
  typename F::Vector sum[U], value;
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u) F::load(in[0] + first + u * F::kLanes, sum[u]);
  for (int k = 1; k < n_in; ++k) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      F::load(in[k] + first + u * F::kLanes, value);
      combine<op>(sum[u], value);
    }
  }
  for (int j = 0; j < n_out; ++j) {
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) F::store(out[j] + first + u * F::kLanes, sum[u]);
  }
}

template <typename F, ReduceOp op>
FLEET_INLINE void tail(typename F::Element* const* out, int n_out,
                       const typename F::Element* const* in, int n_in, size_t first, size_t count) {
  using E = typename F::Element;
  E padded[F::kLanes] = {};
  typename F::Vector sum, value;
  std::memcpy(padded, in[0] + first, count * sizeof(E));
  F::load(padded, sum);
  for (int k = 1; k < n_in; ++k) {
    std::memcpy(padded, in[k] + first, count * sizeof(E));
    F::load(padded, value);
    combine<op>(sum, value);
  }
  F::store(padded, sum);
  for (int j = 0; j < n_out; ++j) std::memcpy(out[j] + first, padded, count * sizeof(E));
}

template <typename F, ReduceOp op>
FLEET_INLINE void all_elements(typename F::Element* const* out, int n_out,
                               const typename F::Element* const* in, int n_in, size_t count) {
  constexpr int kUnroll = 4;
  size_t i = 0;
  for (; i + kUnroll * F::kLanes <= count; i += kUnroll * F::kLanes) {
    step<F, op, kUnroll>(out, n_out, in, n_in, i);
  }
  for (; i + F::kLanes <= count; i += F::kLanes) step<F, op, 1>(out, n_out, in, n_in, i);
  if (i < count) tail<F, op>(out, n_out, in, n_in, i, count - i);
}

template <typename F, ReduceOp op>
FLEET_INLINE void body(void* const* out, int n_out, const void* const* in, int n_in, size_t count) {
  using E = typename F::Element;
  auto* const* to = reinterpret_cast<E* const*>(out);
  const auto* const* from = reinterpret_cast<const E* const*>(in);
  if (n_in == 2 && n_out == 2) {  // two ranks: the pointers stay in registers
    E* const pair_out[2] = {to[0], to[1]};
    const E* const pair_in[2] = {from[0], from[1]};
    all_elements<F, op>(pair_out, 2, pair_in, 2, count);
  } else {
    all_elements<F, op>(to, n_out, from, n_in, count);
  }
}

using Kernel = void (*)(void* const*, int, const void* const*, int, size_t);

#define FLEET_KERNEL(name, attributes)                                               \
  template <typename F, ReduceOp op>                                                 \
  attributes void name(void* const* out, int n_out, const void* const* in, int n_in, \
                       size_t count) {                                               \
    body<F, op>(out, n_out, in, n_in, count);                                        \
  }

#if defined(__x86_64__)
FLEET_KERNEL(avx512, [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]])
FLEET_KERNEL(avx2, [[gnu::target("avx2")]])
#endif
FLEET_KERNEL(baseline, )

enum class Isa { kBaseline, kAvx2, kAvx512 };

template <typename F, ReduceOp op>
Kernel kernel_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return avx512<F, op>;
  if (isa == Isa::kAvx2) return avx2<F, op>;
#endif
  (void)isa;
  return baseline<F, op>;
}

template <typename F>
Kernel kernel_for(Isa isa, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return kernel_for<F, ReduceOp::kSum>(isa);
    case ReduceOp::kMin:
      return kernel_for<F, ReduceOp::kMin>(isa);
    case ReduceOp::kMax:
      return kernel_for<F, ReduceOp::kMax>(isa);
  }
  return nullptr;
}

Kernel kernel_for(Isa isa, DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::kFloat32:
      return kernel_for<Plain<float, 16>>(isa, op);
    case DType::kFloat64:
      return kernel_for<Plain<double, 8>>(isa, op);
    case DType::kFloat16:
      return kernel_for<Float16Lanes>(isa, op);
    case DType::kBFloat16:
      return kernel_for<BFloat16Lanes>(isa, op);
    case DType::kInt64:
      return kernel_for<Plain<int64_t, 8>>(isa, op);
    case DType::kInt32:
      return kernel_for<Plain<int32_t, 16>>(isa, op);
    case DType::kUInt8:
      return kernel_for<Plain<uint8_t, 64>>(isa, op);
  }
  return nullptr;
}

bool has(Isa isa) {
  if (isa == Isa::kAvx512) {
    return FLEET_X86_HAS("avx512f") && FLEET_X86_HAS("avx512bw") && FLEET_X86_HAS("avx512dq") &&
           FLEET_X86_HAS("avx512vl");
  }
  if (isa == Isa::kAvx2) return FLEET_X86_HAS("avx2");
  return isa == Isa::kBaseline;
}

Isa best_isa() {
  static const Isa best = has(Isa::kAvx512) ? Isa::kAvx512
                          : has(Isa::kAvx2) ? Isa::kAvx2
                                            : Isa::kBaseline;
  return best;
}

constexpr const char* kIsaNames[] = {"baseline", "avx2", "avx512"};

}  // namespace

void reduce_elements(DType dtype, ReduceOp op, void* const* out, int n_out, const void* const* in,
                     int n_in, size_t count) {
  kernel_for(best_isa(), dtype, op)(out, n_out, in, n_in, count);
}

const char* reduce_isa() { return kIsaNames[static_cast<int>(best_isa())]; }

bool reduce_elements_with(const char* isa, DType dtype, ReduceOp op, void* const* out, int n_out,
                          const void* const* in, int n_in, size_t count) {
  for (int i = 0; i < 3; ++i) {
    if (std::string_view(isa) != kIsaNames[i] || !has(static_cast<Isa>(i))) continue;
    kernel_for(static_cast<Isa>(i), dtype, op)(out, n_out, in, n_in, count);
    return true;
  }
  return false;
}

}  // namespace fleet
