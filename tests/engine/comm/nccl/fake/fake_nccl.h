// The fake NCCL's interface for tests, in addition to nccl.h. It runs on the emulated GPU: ranks
// are threads of one process, and collectives wait for one another on the threads of their streams.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

namespace fleet::fake_nccl {

// From now on the communicators of this rank report the failure, as after one of the network.
void break_rank(int rank, ncclResult_t failure);
// Ranks of other processes are not looked for: a communicator begins at once, and its collectives
// of several ranks end only when it is aborted. For the life of the process.
void hang_collectives();

// One operation as it ran, in order; kept for all communicators of this process.
struct Call {
  std::string communicator;  // ncclConfig_t::commName
  std::string operation;
  int rank;
  cudaStream_t stream;
};
std::vector<Call> calls();
void forget_calls();
// The number of buffers registered with any communicator now, and the number of ids of the newest
// communicator.
int registrations();
int latest_ids();

}  // namespace fleet::fake_nccl
