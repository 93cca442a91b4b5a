// Runs the threads of CUDA blocks on the host: as fibers of one thread, which take turns at
// barriers and warp functions. A thread that meets none runs to its end as a plain call.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace fleet::emulator {

struct Position {
  uint3 thread, block;
  dim3 block_size, grid_size;
};

// Calls thread() for every thread of every block, blocks one after the other, the threads of every
// other one from the last to the first; set(position) before
// each turn of a thread. Grids of several host threads wait for one another. Throws fleet::Error
// where the kernel could hang or be undefined on a GPU: threads that wait for different things,
// warp functions that not all 32 lanes call.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread,
              void (*set)(const Position&));

// For the running thread of a block:
void barrier();                            // waits for all threads that have not returned
const uint64_t* exchange(uint64_t value);  // the values of the warp's 32 lanes, until the next call
int lane();
void* shared_memory();  // the launch's dynamic shared memory, filled with garbage for each block

}  // namespace fleet::emulator
