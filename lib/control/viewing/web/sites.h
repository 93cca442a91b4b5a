// The two servers of pages.
#pragma once

#include <memory>
#include <vector>

#include "daemon/fleetd.h"
#include "daemon/fleetd_client.h"
#include "transport/event_loop.h"
#include "viewing/web/job_site.h"
#include "viewing/web/web_config.h"

namespace fleet {

// fleetd --web: a page with the jobs of its node, and the page of each.
FleetdPage fleetd_page();

// A job with these parts, at least one of them running. Throws kUsage if the secret of their
// fleetds is unknown.
std::unique_ptr<WatchedJob> job_of_parts(EventLoop& loop, std::vector<JobPart> parts,
                                         FleetdClient* fleetds);

// fleetrun top --web: the page of one job, until the user ends it. `parts` belong to one running
// job. Returns an exit code. Throws kUsage if it cannot listen.
int serve_top(const WebConfig& config, std::vector<JobPart> parts, FleetdClient* fleetds);

}  // namespace fleet
