// --metrics: GET /metrics in Prometheus' text format, from the agent's loop.
#pragma once

#include <memory>

#include "launch/planning/metrics_config.h"
#include "node/agent.h"
#include "rendezvous/event_loop.h"

namespace fleet {

// For AgentPlan::observe. Throws kUsage if it cannot listen, or the file holds no token.
std::shared_ptr<void> serve_metrics(const MetricsConfig& config, EventLoop& loop, AskLive ask);

}  // namespace fleet
