// Finds the rendezvous of a running job that this node does not know.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "transport/security.h"

namespace fleet {

// The first of `addresses` ("10.0.0.2:6768") whose rendezvous serves a job of this id that has
// begun and has not ended; "" if none does. Asks all in parallel; takes at most `timeout`.
std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds timeout);

}  // namespace fleet
