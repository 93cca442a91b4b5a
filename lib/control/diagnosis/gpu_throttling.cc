#include "diagnosis/gpu_throttling.h"

#include <vector>

#include "base/text.h"

namespace fleet {
namespace {

// Copied from nvml.h; the ABI is stable.
constexpr uint64_t kPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40,
                   kPowerBrake = 0x80;

}  // namespace

uint64_t slowing_reasons(uint64_t reasons) {
  return reasons & (kPowerCap | kHwSlowdown | kSwThermal | kHwThermal | kPowerBrake);
}

std::string throttle_text(uint64_t reasons) {
  std::vector<std::string> all;
  if (reasons & kPowerCap) all.push_back("power");
  if (reasons & (kSwThermal | kHwThermal)) all.push_back("heat");
  if (reasons & kPowerBrake) all.push_back("brake");
  if (all.empty() && (reasons & kHwSlowdown)) all.push_back("hardware");
  return join(all, "+");
}

}  // namespace fleet
