// A rank's own progress, and a server's, as messages. `reported`: RankSteps.reported.
#pragma once

#include "observe/rank_progress.h"
#include "observe/server_progress.h"
#include "transport/control_messages.h"

namespace fleet {

wire::RankSteps rank_steps(int local_rank, const RankProgress& seen, bool reported = false);
// Adds a trainer's use of servers.
void add_server_use(const ServerUse& use, wire::RankSteps* steps);
wire::ServerReport server_report(int local_rank, const ServerProgress& seen);

}  // namespace fleet
