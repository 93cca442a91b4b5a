// The updates that a run has lost with its parameter servers.
#pragma once

#include <cstdint>
#include <string>

namespace fleet {

// The training steps that the last start of the run in this folder recorded (metrics.jsonl) after
// `step`, at which this start begins; 0: none, or unknown. The newest ones may not be recorded.
int64_t recorded_steps_after(const std::string& folder, int64_t step);

}  // namespace fleet
