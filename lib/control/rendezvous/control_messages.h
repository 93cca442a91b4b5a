// The messages of proto/control.proto, as fleet::wire.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "proto/control.pb.h"

namespace fleet {

namespace wire = control::v1;

// The grace time of a StopRequest, StopCommand or StopJob.
template <typename Message>
std::optional<std::chrono::milliseconds> grace_of(const Message& message) {
  if (!message.has_grace_ms()) return std::nullopt;
  return std::chrono::milliseconds(std::max(0, message.grace_ms()));
}

}  // namespace fleet
