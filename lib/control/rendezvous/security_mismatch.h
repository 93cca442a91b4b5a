// Finds why a reachable rendezvous does not accept us.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "rendezvous/security.h"

namespace fleet {

// Probes the server at `address` and compares it with `ours`: another secret, TLS on one side only,
// clocks apart. Returns kUsage with instructions, or nullopt if all of that matches. Takes up to 1
// s.
std::optional<Error> find_security_mismatch(const std::string& address, const Security& ours);

}  // namespace fleet
