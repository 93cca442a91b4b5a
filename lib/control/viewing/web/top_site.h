// fleetrun top --web: the page of one job, until the user ends it.
#pragma once

#include <string>
#include <vector>

#include "daemon/fleetd_client.h"
#include "viewing/web/web_config.h"

namespace fleet {

// `parts`: of one job that runs. Returns an exit code. Throws kUsage if it cannot listen.
int serve_top(const WebConfig& config, std::vector<JobPart> parts, FleetdClient* fleetds);

}  // namespace fleet
