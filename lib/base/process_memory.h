// Memory of this process, as the kernel counts it.
#pragma once

#include <cstdint>

namespace fleet {

struct ProcessMemory {
  int64_t resident = 0;  // bytes: VmRSS of proc(5)
  int64_t peak = 0;      // the most that was resident since the process began: VmHWM
};

// Zeros where /proc tells nothing.
ProcessMemory process_memory();

}  // namespace fleet
