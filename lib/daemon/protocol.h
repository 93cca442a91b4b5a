// What proto/fleetd.proto and lib/daemon's own types have in common.
#pragma once

#include <string>

#include "base/error.h"
#include "daemon/job_table.h"
#include "proto/fleetd.pb.h"

namespace fleet {

// The version of the messages; a fleetd of another one refuses.
inline constexpr int kFleetdProtocol = 2;
inline constexpr int kDefaultFleetdPort = 6767;

daemon::v1::Prepare to_wire(const JobRequest& request);
// kUsage where the client speaks another protocol.
JobRequest request_from(const daemon::v1::Prepare& message);

daemon::v1::Tell refusal(const Error& error);
Error error_from(const daemon::v1::Refused& refused);

}  // namespace fleet
