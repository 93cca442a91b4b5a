#include "daemon/protocol.h"

#include <signal.h>

#include <cmath>

#include "base/terminal_text.h"
#include "launch/planning/refuse.h"

namespace fleet {

void check_version(const wire::ClientMessage& first) {
  if (first.protocol() == kFleetdProtocol) return;
  throw Error(
      ErrorCode::kUsage,
      "fleetrun " + first.version() + " and this fleetd " FLEET_VERSION " use different protocols",
      {}, "install the same version on both machines");
}

Error other_version(const std::string& address, const std::string& next) {
  return {ErrorCode::kUsage,
          "the service there is not a fleetd of this fleetrun's version (" FLEET_VERSION
          ", protocol " +
              std::to_string(kFleetdProtocol) + ")",
          address, next};
}

void check(const wire::JobInfo& job) {
  if (!wire::JobInfo::Phase_IsValid(job.phase())) {
    refuse("phase " + std::to_string(job.phase()) + " is not known",
           "job " + shown_name(job.record().job_id()), "install the same version everywhere");
  }
  if (!std::isfinite(job.record().started()) || !std::isfinite(job.ended())) {
    refuse("its times are not numbers", "job " + shown_name(job.record().job_id()));
  }
}

void check(const wire::StopJob& how) {
  const int signal = how.signal();
  const bool stops = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  if (!stops) refuse("signal " + std::to_string(signal) + " stops no job");
  if (how.grace_ms() < 0) refuse("a grace time is negative");
}

}  // namespace fleet
