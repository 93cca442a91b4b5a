// Finding the first operation of a step that makes a value which is not finite.
#pragma once

#include <optional>

#include "exec/kernel.h"

namespace fleet {

struct NotFinite {
  double value = 0;   // infinite or NaN
  int64_t count = 0;  // how many there are
};

// Looks at all elements as they lie in memory, padding included. Waits for the stream. Argument: of
// a floating type.
std::optional<NotFinite> find_not_finite(const Argument& argument, Device& device, Stream& stream);

// What the job ends with. before: an input of `op` that was not finite either, or "".
Error not_finite_error(const Program& program, const Op& op, VarId output, const NotFinite& found,
                       const std::string& before, const StepInfo& info);

}  // namespace fleet
