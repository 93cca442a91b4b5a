#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx2,fma")]]
#define FLEET_ISA avx2
#define FLEET_LANES 8
#define FLEET_PANEL 2
#define FLEET_HAS_PAIRS 0
#include "backend/cpu/attention_loops.inc"

#else

#include "backend/cpu/attention.h"

namespace fleet::cpu::avx2 {
AttentionRuns attention_runs(DType) { return {}; }
}  // namespace fleet::cpu::avx2

#endif
