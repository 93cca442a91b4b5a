// Proxies in the environment of the ranks: it stays as it is, and a warning names what they break.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Whether `host` is one that `no_proxy` ("localhost,.cluster,10.0.0.0/8" or "*") excepts: a name or
// a part of one behind a dot, an address, or a network.
bool excepted_from_proxy(const std::string& host, const std::string& no_proxy);

// A line for each of these dialects whose library would ask the proxy for another rank.
// `environment` looks a variable up.
std::vector<std::string> proxy_warnings(
    const std::vector<std::string>& dialects, const Assignment& assignment,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

}  // namespace fleet
