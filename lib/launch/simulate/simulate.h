// `fleetrun simulate`: how long a large job takes to meet, on this machine: the real rendezvous
// server, and in other processes the real clients of all its nodes, one TCP connection each.
#pragma once

#include <string>
#include <vector>

namespace fleet {

int simulate(const std::vector<std::string>& arguments);

}  // namespace fleet
