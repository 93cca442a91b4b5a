// --metrics: GET /metrics in Prometheus' text format, from the agent's loop.
#pragma once

#include <memory>
#include <string>

#include "launch/planning/launch_config.h"
#include "node/agent.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// For AgentPlan::observe. Throws kUsage if it cannot listen, or the file holds no token.
std::shared_ptr<void> serve_metrics(const MetricsConfig& config, EventLoop& loop, AskLive ask);

// In Prometheus' text format (version 0.0.4): the series of the job on node 0, and of the ranks of
// `node_rank`: each node serves its own, so that a job has each series once. At most 30 series per
// rank, and 7 more if it uses parameter servers; unknown values are left out.
std::string metrics_text(const LiveReport& report, int node_rank);

}  // namespace fleet
