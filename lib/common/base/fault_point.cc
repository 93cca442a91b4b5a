#include "base/fault_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <sstream>
#include <string>

#include "base/env.h"
#include "base/error.h"

namespace fleet {
namespace {

struct Fault {
  std::string place, file;
  int detail = 0, times = 0;
};

std::optional<Fault> fault_of_environment() {
  const std::optional<std::string> text = get_env("FLEET_FAULT");
  if (!text) return std::nullopt;
  Fault fault;
  std::istringstream words(*text);
  words >> fault.place >> fault.detail >> fault.times >> fault.file;
  if (!words || fault.times < 1) {
    throw Error(ErrorCode::kUsage, "not of the form PLACE DETAIL N FILE", "FLEET_FAULT");
  }
  return fault;
}

}  // namespace

void fault_point(const char* place, int detail) {
  static const std::optional<Fault> fault = fault_of_environment();
  static std::atomic<int> times{0};
  if (!fault || fault->place != place || fault->detail != detail) return;
  if (++times != fault->times || ::unlink(fault->file.c_str()) != 0) return;
  ::raise(SIGKILL);
}

}  // namespace fleet
