// The error for a job whose Plan does not fit into its device's memory.
#pragma once

#include <functional>

#include "exec/plan.h"

namespace fleet {

// The largest batch below `batch` whose Plan needs at most `available` bytes; 0 if no batch fits.
//   bytes_at  bytes that a batch needs; must not fall as the batch grows
int64_t largest_batch(int64_t batch, size_t available,
                      const std::function<size_t(int64_t batch)>& bytes_at);
// The same, with an estimate that is fast but too low, and the bytes that a batch really needs,
// which may also fall as the batch grows: another batch may get another algorithm. The result is
// a batch that really fits, but not always the largest.
int64_t largest_batch(int64_t batch, size_t available,
                      const std::function<size_t(int64_t batch)>& estimate,
                      const std::function<size_t(int64_t batch)>& bytes_of);

// Returns kNoMemory with the failed request (`cause`, which the device threw), the planned bytes
// per kind, and the batch size that would fit.
Error out_of_memory(const Error& cause, const PlannedMemory& planned, int64_t batch,
                    int64_t fitting_batch);

}  // namespace fleet
