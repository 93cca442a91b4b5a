// The updates that a run has lost with its parameter servers.
#pragma once

#include <cstdint>
#include <string>

#include "train/checkpoint.h"

namespace fleet {

// The training steps that the last start of the run in this folder recorded (metrics.jsonl) after
// `step`, at which this start begins; 0: none, or unknown. The newest ones may not be recorded.
int64_t recorded_steps_after(const std::string& folder, int64_t step);

// Warns of those after this position: servers whose trainers run apart do not come to the same
// values again.
void log_lost_updates(const std::string& folder, const TrainingPosition& at);

}  // namespace fleet
