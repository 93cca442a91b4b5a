// Memory that kernels need on each thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fleet::cpu {

// Memory of this thread, 64-byte aligned, that a later call on the thread may move and overwrite.
// It only grows: the first step allocates it.
std::byte* thread_scratch(int64_t bytes);

}  // namespace fleet::cpu
