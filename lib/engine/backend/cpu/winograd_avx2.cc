#if defined(__x86_64__)

#define FLEET_TARGET [[gnu::target("avx2,fma")]]
#define FLEET_ISA avx2
#define FLEET_LANES 8
#define FLEET_PANEL 2
#define FLEET_HAS_PAIRS 0
#include "backend/cpu/winograd_loops.inc"

#else

#include "backend/cpu/winograd.h"

namespace fleet::cpu::avx2 {
WinogradRuns winograd_runs() { return {}; }
}  // namespace fleet::cpu::avx2

#endif
