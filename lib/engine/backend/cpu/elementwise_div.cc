#include "backend/cpu/broadcast_loops.h"

namespace fleet {
namespace {

struct Divide {
  FLEET_INLINE float operator()(float x, float y) const { return x / y; }
};

}  // namespace

FLEET_KERNEL(cpu, elementwise_div) { cpu::define_broadcast<Divide>(def); }

}  // namespace fleet
