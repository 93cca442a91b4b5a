// Streams of the emulated GPU: work runs when it is issued, or is recorded where its stream is
// being captured. A stream to which work was issued that waits for others (a collective) has a
// thread from then on: what is issued to it runs there, in order, and the host may run ahead.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace fleet::emulator {

// Runs `work` now, or keeps it for the graph that `stream` is captured into.
void issue(cudaStream_t stream, std::function<void()> work);
// The same for work that may wait: it and what comes behind it run on the stream's thread.
void issue_waiting(cudaStream_t stream, std::function<void()> work);

// The result of a launch with these sizes (limits of compute capability 9.0).
cudaError_t launchable(dim3 grid, dim3 block, size_t shared_bytes);

}  // namespace fleet::emulator
