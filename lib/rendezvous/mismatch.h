// Why a rendezvous that can be reached does not let us in.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "rendezvous/security.h"

namespace fleet {

// Looks at who listens at `address` and compares it with `ours`: another secret, TLS on one side
// only, clocks apart. kUsage, saying what to do; nothing where all of that fits. Takes up to 1 s.
std::optional<Error> find_mismatch(const std::string& address, const Security& ours);

}  // namespace fleet
