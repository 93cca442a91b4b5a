// Common to clients and fleetd: the version of their messages, and the secret of a cluster.
#pragma once

#include <string>

#include "base/error.h"
#include "transport/control_messages.h"
#include "transport/failure_detector.h"
#include "transport/security.h"

namespace fleet {

// Raise it when the meaning of a message changes: ends of different versions refuse each other.
inline constexpr int kFleetdProtocol = 7;
inline constexpr int kDefaultFleetdPort = 6767;
inline constexpr HeartbeatTimes kHeartbeatTimes{
    .heartbeat_interval = std::chrono::milliseconds(500),
    .max_silence = std::chrono::milliseconds(3'000)};

// Throws kUsage if the sender of a session's first message uses another version.
void check_version(const wire::ClientMessage& first);
// The client's error if the server at this address has no service of this version.
Error other_version(const std::string& address, const std::string& next);

// Reads it from `file` (if given), FLEETD_SECRET, ~/.config/fleetrun/fleetd.secret or
// /etc/fleetrun/fleetd.secret. Throws kUsage if it is missing, it is too short, or other users may
// read the file. `make`: creates a missing secret in the user's own file.
Security fleetd_security(const std::string& file, bool make);

}  // namespace fleet
