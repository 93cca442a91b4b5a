#include "backend/cpu/elementwise.h"

namespace fleet {

FLEET_KERNEL(cpu, flatten) { cpu::define_copy(def); }

}  // namespace fleet
