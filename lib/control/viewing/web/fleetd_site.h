// fleetd --web: a page with the jobs of its node, and the page of each.
#pragma once

#include "daemon/fleetd.h"

namespace fleet {

FleetdPage fleetd_page();

}  // namespace fleet
