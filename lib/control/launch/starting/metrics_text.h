// A LiveReport in Prometheus' text format (version 0.0.4), for --metrics. Pure.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// The series of the job on node 0, and of the ranks of `node_rank`: each node serves its own, so
// that a job has each series once. At most 30 series a rank; unknown values are left out.
std::string metrics_text(const LiveReport& report, int node_rank);

}  // namespace fleet
