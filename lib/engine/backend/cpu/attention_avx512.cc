#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]
#define FLEET_ISA avx512
#define FLEET_LANES 16
#define FLEET_PANEL 4
#define FLEET_HAS_PAIRS 0
#include "backend/cpu/attention_loops.inc"

#else

#include "backend/cpu/attention.h"

namespace fleet::cpu::avx512 {
AttentionRuns attention_runs(DType) { return {}; }
}  // namespace fleet::cpu::avx512

#endif
