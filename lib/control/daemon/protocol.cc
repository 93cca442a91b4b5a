#include "daemon/protocol.h"

#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "launch/planning/refuse.h"
#include "transport/security.h"

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

namespace {

// The file in the folder of the secret of the user's jobs.
std::string users_file() {
  const std::string jobs = default_secret_path();
  return jobs.empty() ? jobs : jobs.substr(0, jobs.rfind('/')) + "/fleetd.secret";
}

Security from_file(const std::string& path) { return {read_secret(path), true, path}; }

}  // namespace

Security fleetd_security(const std::string& file, bool make) {
  if (!file.empty()) return from_file(file);
  if (const auto secret = get_env("FLEETD_SECRET")) {
    return {checked_secret(*secret, "FLEETD_SECRET"), true, "FLEETD_SECRET"};
  }
  const std::string own = users_file();
  for (const std::string& path : {own, std::string("/etc/fleetrun/fleetd.secret")}) {
    if (!path.empty() && ::access(path.c_str(), R_OK) == 0) return from_file(path);
  }
  if (make && !own.empty()) {
    if (make_secret(own)) {
      spdlog::warn(
          "created a secret in {}: copy it to the other nodes and to the hosts that start jobs",
          own);
    }
    return from_file(own);
  }
  refuse("the secret of the fleetds is unknown on this host", {},
         "copy it from a node to " + (own.empty() ? "/etc/fleetrun/fleetd.secret" : own) +
             ", or give it with FLEETD_SECRET or --fleetd_secret_file");
}

}  // namespace fleet
