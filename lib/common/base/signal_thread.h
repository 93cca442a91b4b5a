// A thread that runs the handlers of a program's signals.
#pragma once

#include <initializer_list>

namespace fleet {

// Blocks these signals in the calling thread and in those that it starts later. A new thread, which
// lives as long as the process, receives them and runs their handlers. Later calls do nothing. Call
// it on the main thread, before others start.
//
// Kernels of oneDNN 2.6.3 (AVX-512) may be damaged by a handler that runs on their thread: jobs
// with fully connected layers aborted with a corrupted heap after SIGTERM and SIGUSR1.
void start_signal_thread(std::initializer_list<int> signals);

}  // namespace fleet
