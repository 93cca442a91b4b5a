// The version of the messages between clients and fleetd.
#pragma once

#include "base/error.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/failure_detector.h"

namespace fleet {

// Raise it when the meaning of a message changes: ends of different versions refuse each other.
inline constexpr int kFleetdProtocol = 7;
inline constexpr int kDefaultFleetdPort = 6767;
inline constexpr HeartbeatTimes kHeartbeatTimes{
    .heartbeat_interval = std::chrono::milliseconds(500),
    .max_silence = std::chrono::milliseconds(3'000)};

// Throws kUsage if the sender of a session's first message uses another version.
void check_version(const wire::ClientMessage& first);
// The same on the client's side: the server at this address has no service of this version.
Error other_version(const std::string& address, const std::string& next);

}  // namespace fleet
