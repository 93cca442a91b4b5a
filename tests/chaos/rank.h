#pragma once

namespace fleet::chaos {

// A rank of a trial. It has a connection with every other rank, ends with 1 as soon as one of them
// is gone (as programs do that lose a peer), and starts a helper that leaves its process group. In
// its folder it writes ready.RANK, with its pid, once all are connected, and term.RANK, with the
// time, on SIGTERM. After a restart of the job it writes again.RANK instead, with the time, and
// ends with 0 when all have done so. Returns the exit code.
int run_rank();

}  // namespace fleet::chaos
