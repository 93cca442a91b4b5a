// Finds the first operation of a step that produces a non-finite value.
#pragma once

#include <optional>

#include "exec/kernel.h"

namespace fleet {

struct NotFinite {
  double value = 0;   // infinite or NaN
  int64_t count = 0;  // number of non-finite elements
};

// Checks all elements in memory order, including padding. Waits for the stream. `argument` must
// have a floating type.
std::optional<NotFinite> find_not_finite(const Argument& argument, Device& device, Stream& stream);

// The error that ends the job. before: an input of `op` that was already non-finite, or "".
Error not_finite_error(const Program& program, const Op& op, VarId output, const NotFinite& found,
                       const std::string& before, const StepInfo& info);

}  // namespace fleet
