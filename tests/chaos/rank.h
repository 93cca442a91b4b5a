#pragma once

namespace fleet::chaos {

// What every rank of a trial does: it has a connection with every other rank, ends with 1 as soon
// as one of them is gone (as programs do that lose a peer), and has a helper that no longer belongs
// to its process group. In the folder it runs in it leaves ready.RANK, with its pid, once all are
// connected, and term.RANK, with the time, when it is told to stop. Where the job was restarted it
// leaves again.RANK instead, with the time, and ends well when all have. Returns the exit code.
int run_rank();

}  // namespace fleet::chaos
