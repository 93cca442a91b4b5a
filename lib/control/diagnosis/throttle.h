// Why NVIDIA's driver lowers the clock of a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// Of nvmlClocksEventReasons, those that slow work down: not "idle", and no clock that somebody set.
uint64_t slowing_reasons(uint64_t reasons);
// "power", "heat", "brake" or several of them, as in "power+heat"; "" if none slows it down.
std::string throttle_text(uint64_t reasons);

}  // namespace fleet
