// check_finite: checks the loss and the gradients of each update, on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program.h"

namespace fleet {

// The elements of the record: what check_finite has found since the record was zeroed.
struct FiniteRecord {
  int64_t checks = 0;       // updates checked
  int64_t bad = 0;          // updates with a value that was not finite
  int64_t first = 0;        // ordinal of the first bad check, from 1; 0: none
  int64_t first_input = 0;  // lowest bad input of that check: 0 the loss, i gradient i - 1
};
inline constexpr int64_t kFiniteRecord = 4;  // elements

// The record's variable: a state of this process, never saved (is_saved()).
inline constexpr char kFiniteRecordName[] = "unsaved.finite_checks";

// The count of updates left out in a row (count_skipped_updates): a state of this process too.
inline constexpr char kSkippedUpdatesName[] = "unsaved.skipped_updates";

// The treatment of an update whose loss or gradients are not finite.
enum class OnNan {
  kContinue,  // apply it; there is no check
  kStop,      // leave it out, and the host ends the job
  kSkip,      // leave it out
};

// Appends the check to a section that runs when the updates run, before them. Returns found: int32
// [1]; a value other than 0 skips an update (optim/update_op.h).
//   loss  float32 [1]
VarId append_check_finite(Program& program, SectionId section, VarId loss,
                          const std::vector<VarId>& gradients);

}  // namespace fleet
