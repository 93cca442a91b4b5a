// What a job is told whose Plan does not fit into its device's memory.
#pragma once

#include <functional>

#include "exec/plan.h"

namespace fleet {

// The largest batch below `batch` whose Plan needs no more than `available` bytes; 0: none does.
//   bytes_at  what a batch needs; must not fall when the batch grows
int64_t largest_batch(int64_t batch, size_t available,
                      const std::function<size_t(int64_t batch)>& bytes_at);

// kNoMemory: what was wanted (by `cause`, which the device threw), what is planned per kind, and
// which batch size would fit.
Error out_of_memory(const Error& cause, const PlannedMemory& planned, int64_t batch,
                    int64_t fitting_batch);

}  // namespace fleet
