// Conversions between proto/fleetd.proto and the types of lib/control/daemon.
#pragma once

#include <string>

#include "base/error.h"
#include "daemon/job_table.h"
#include "proto/fleetd.pb.h"

namespace fleet {

// The version of the messages; a fleetd of another version refuses them.
inline constexpr int kFleetdProtocol = 3;
inline constexpr int kDefaultFleetdPort = 6767;

daemon::v1::Prepare to_wire(const JobRequest& request);
// Throws kUsage if the client uses another protocol version.
JobRequest request_from(const daemon::v1::Prepare& message);

daemon::v1::Event refused_event(const Error& error);
Error error_from(const daemon::v1::Refused& refused);

}  // namespace fleet
