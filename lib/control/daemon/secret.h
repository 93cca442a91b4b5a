// The secret shared by the fleetds of a cluster and their clients.
#pragma once

#include <string>

#include "rendezvous/security.h"

namespace fleet {

// Reads it from `file` (if given), FLEETD_SECRET, ~/.config/fleetrun/fleetd.secret or
// /etc/fleetrun/fleetd.secret. Throws kUsage if there is none, it is too short, or other users may
// read the file. `make`: creates a missing secret in the user's own file.
Security fleetd_security(const std::string& file, bool make);

}  // namespace fleet
