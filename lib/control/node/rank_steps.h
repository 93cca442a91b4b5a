// A rank's own progress as a message. `reported`: RankSteps.reported.
#pragma once

#include "observe/rank_progress.h"
#include "transport/control_messages.h"

namespace fleet {

wire::RankSteps rank_steps(int local_rank, const RankProgress& seen, bool reported = false);

}  // namespace fleet
