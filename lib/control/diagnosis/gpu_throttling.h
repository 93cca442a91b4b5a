// Why the driver of NVIDIA lowers the clock of a GPU. Pure. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// Of nvmlClocksEventReasons, for which NVIDIA's driver lowers the clock of a GPU, those that slow
// work down: not "idle", and no clock that a program has set.
uint64_t slowing_reasons(uint64_t reasons);
// "power", "heat", "brake" or several of them, as in "power+heat"; "" if none slows it down.
std::string throttle_text(uint64_t reasons);

}  // namespace fleet
