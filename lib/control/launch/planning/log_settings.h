// Log settings of the ranks' output, from the options.
#pragma once

#include "launch/planning/log_config.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

inline constexpr int64_t kMinLogSize = 64 << 10;  // bytes

// Throws kUsage if --log_total_size is too small for the logs of `local_world_size` ranks.
void check_log_settings(const LogConfig& config, int local_world_size);

// `spawn`: has the ranks of this node.
wire::LogSettings log_settings(const LogConfig& config, const Assignment& assignment,
                               const wire::SpawnRanks& spawn);

}  // namespace fleet
