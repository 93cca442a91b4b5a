// NCCL's communicator keeps the contract of all communicators.
#include "tests/engine/comm/nccl/check_all.h"
#include "tests/engine/comm/nccl/gpus.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Nccl, Contract,
                         testing::Values(on_gpus({1}), on_gpus({1, 1}), on_gpus({1, 2, 2}),
                                         on_gpus({1, 1, 2, 2})),
                         name_of_case);

// The same checks that ranks on a real GPU run (gpu/).
TEST(NcclCheckAll, OverTheFake_FindsNothing) {
  for (int ranks : {1, 2, 4}) {
    run_ranks(on_gpus(std::vector<int>(ranks, 1)),
              [](Rank& rank) { check_all(rank.comm, rank.device); });
  }
}

}  // namespace
}  // namespace fleet
