// Log settings of the ranks' output, from the options.
#pragma once

#include "base/config.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

// Throws kUsage if a size is invalid, or --log_total_size is too small for the logs of
// `local_world_size` ranks.
void check_log_settings(const Settings& settings, int local_world_size);

bool stamps_console(const Settings& settings);

// `spawn`: has the ranks of this node.
wire::LogSettings log_settings(const Settings& settings, const Assignment& assignment,
                               const wire::SpawnRanks& spawn);

}  // namespace fleet
