// Memory of this process, as the kernel counts it.
#pragma once

#include <cstdint>

namespace fleet {

struct ProcessMemory {
  int64_t resident = 0;  // bytes: VmRSS of proc(5)
  int64_t peak = 0;      // largest resident size since the process began: VmHWM
};

// Zeros if /proc is not available.
ProcessMemory process_memory();

}  // namespace fleet
