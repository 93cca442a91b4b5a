#include "backend/cpu/elementwise.h"

namespace fleet {

FLEET_KERNEL(cpu, reshape) { cpu::define_copy(def); }

}  // namespace fleet
