#include "base/process_memory.h"

#include <fstream>
#include <string>

namespace fleet {

ProcessMemory process_memory() {
  std::ifstream file("/proc/self/status");
  ProcessMemory memory;
  std::string word;
  while (file >> word) {
    int64_t* const value = word == "VmRSS:"   ? &memory.resident
                           : word == "VmHWM:" ? &memory.peak
                                              : nullptr;
    if (!value || !(file >> *value)) continue;
    *value *= 1024;  // the file gives kB
  }
  return memory;
}

}  // namespace fleet
