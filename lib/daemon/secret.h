// The secret that the fleetds of a cluster and their clients share.
#pragma once

#include <string>

#include "rendezvous/security.h"

namespace fleet {

// From FLEETD_SECRET, `file` (where it is given), ~/.config/fleetrun/fleetd.secret or
// /etc/fleetrun/fleetd.secret. kUsage where there is none, it is too short, or others may read
// the file. `make`: where there is none it is made, in the user's own file.
Security fleetd_security(const std::string& file, bool make);

}  // namespace fleet
