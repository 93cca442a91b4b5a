// Dumps of PyTorch's flight recorder: pickles.
#include "diagnosis/collective_waits.h"
#include "node/flight_dump.h"
#include "tests/fuzz/fuzz.h"

// The number of ranks, and the dump.
FLEET_FUZZ(flight_dump) {
  const int ranks = fleet::fuzz::take_byte(&bytes);
  const fleet::RankCollectives calls = fleet::calls_of_flight_dump(
      bytes, "dump", {.rank = 0, .world_size = ranks, .unix_time = int64_t{1} << 60});
  fleet::Stacks all;
  for (int rank = 0; rank < 2; ++rank) {
    *all.add_collectives() = calls;
    all.mutable_collectives(rank)->set_rank(rank);
  }
  for (const fleet::GroupCalls& group : calls.groups()) {
    fleet::fuzz::require(group.done() <= group.entered() && group.calls_size() <= 256,
                         "the calls of a group are few, and done after they are entered");
  }
  fleet::find_collective_waits(all);
}
