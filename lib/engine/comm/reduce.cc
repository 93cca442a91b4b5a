#include "comm/reduce.h"

#include <string_view>

#include "base/cpu.h"

namespace fleet {
namespace {

enum class Isa { kBaseline, kAvx2, kAvx512 };

auto kernel_of(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::reduce_kernel
         : isa == Isa::kAvx2 ? avx2::reduce_kernel
                             : baseline::reduce_kernel;
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

}  // namespace

void reduce_elements(DType dtype, ReduceOp op, void* const* out, int n_out, const void* const* in,
                     int n_in, size_t count) {
  kernel_of(best_isa())(dtype, op)(out, n_out, in, n_in, count);
}

bool reduce_elements_with(const char* isa, DType dtype, ReduceOp op, void* const* out, int n_out,
                          const void* const* in, int n_in, size_t count) {
  static constexpr const char* kIsaNames[] = {"baseline", "avx2", "avx512"};
  for (int i = 0; i < 3; ++i) {
    if (std::string_view(isa) != kIsaNames[i] || !has(static_cast<Isa>(i))) continue;
    kernel_of(static_cast<Isa>(i))(dtype, op)(out, n_out, in, n_in, count);
    return true;
  }
  return false;
}

}  // namespace fleet
