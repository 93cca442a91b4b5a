// check_finite: looks at the loss and the gradients of each update, on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/program.h"

namespace fleet {

// What check_finite has seen since the record was zero, as its elements.
struct FiniteRecord {
  int64_t checks = 0;       // updates looked at
  int64_t bad = 0;          // of those, with something that was not finite
  int64_t first = 0;        // which check the first of them was, from 1; 0: none
  int64_t first_input = 0;  // what was bad in it: 0 the loss, i gradient i - 1; the lowest
};
inline constexpr int64_t kFiniteRecord = 4;  // elements

// The record's variable: a state of this process, never saved (is_saved()).
inline constexpr char kFiniteRecordName[] = "unsaved.finite_checks";

// What becomes of an update whose loss or gradients are not finite.
enum class OnNan {
  kContinue,  // it is made; nobody looks
  kStop,      // it is left out, and the host ends the job
  kSkip,      // it is left out
};

// Appends the check to a section that runs when the updates do; before them. Returns found: int32
// [1], 0 or what skips an update (optim/update_op.h).
//   loss  float32 [1]
VarId append_check_finite(Program& program, SectionId section, VarId loss,
                          const std::vector<VarId>& gradients);

}  // namespace fleet
