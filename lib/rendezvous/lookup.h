// Where a job runs that this node does not know of.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rendezvous/security.h"

namespace fleet {

// The first of `addresses` ("10.0.0.2:6768") at which the rendezvous of a job of this id serves
// that has begun and has not ended; "" where none does. Asks all at once; takes `patience` where
// one does not answer, and no longer.
std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds patience);

}  // namespace fleet
