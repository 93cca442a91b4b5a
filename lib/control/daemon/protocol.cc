#include "daemon/protocol.h"

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

}  // namespace fleet
