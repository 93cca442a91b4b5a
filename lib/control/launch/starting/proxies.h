// Proxies in the ranks' environment: fleetrun leaves them unchanged, and warns if they break a
// dialect.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/cluster_environment.h"
#include "rendezvous/types.h"

namespace fleet {

// Whether `no_proxy` ("localhost,.cluster,10.0.0.0/8" or "*") excludes `host`. Entries are names,
// domain suffixes, addresses or networks.
bool excepted_from_proxy(const std::string& host, const std::string& no_proxy);

// A warning for each of these dialects whose library would connect to another rank through the
// proxy. `environment` looks up a variable.
std::vector<std::string> proxy_warnings(const std::vector<std::string>& dialects,
                                        const Assignment& assignment,
                                        const EnvironmentLookup& environment);

}  // namespace fleet
