#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]
#define FLEET_ISA avx512_bf16
#define FLEET_LANES 16
#define FLEET_PANEL 4
#define FLEET_HAS_PAIRS 1
#include "backend/cpu/attention_loops.inc"

#else

#include "backend/cpu/attention.h"

namespace fleet::cpu::avx512_bf16 {
AttentionRuns attention_runs(DType) { return {}; }
}  // namespace fleet::cpu::avx512_bf16

#endif
