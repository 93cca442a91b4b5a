#include "base/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"

namespace fleet {
namespace {

struct Fault {
  std::string place, file;
  int detail = 0, times = 0;
  std::chrono::milliseconds pause{0};  // 0: the process ends
};

std::optional<Fault> fault_of_environment() {
  const std::optional<std::string> text = get_env("FLEET_FAULT");
  if (!text) return std::nullopt;
  Fault fault;
  std::istringstream words(*text);
  words >> fault.place >> fault.detail >> fault.times >> fault.file;
  if (!words || fault.times < 1) {
    throw Error(ErrorCode::kUsage, "not of the form PLACE DETAIL N FILE [MILLISECONDS]",
                "FLEET_FAULT");
  }
  if (int64_t pause = 0; words >> pause) fault.pause = std::chrono::milliseconds(pause);
  return fault;
}

}  // namespace

void fault_point(const char* place, int detail) {
  static const std::optional<Fault> fault = fault_of_environment();
  static std::atomic<int> times{0};
  static std::atomic<bool> slow{false};
  if (!fault || fault->place != place || fault->detail != detail) return;
  if (slow) return std::this_thread::sleep_for(fault->pause);
  if (++times != fault->times || ::unlink(fault->file.c_str()) != 0) return;
  if (fault->pause.count() == 0) ::raise(SIGKILL);
  spdlog::warn("FLEET_FAULT: {} takes {} ms longer from now on", place, fault->pause.count());
  slow = true;
}

}  // namespace fleet
