// NCCL's communicator keeps the contract of all communicators.
#include "tests/comm/nccl/gpus.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Nccl, Contract,
                         testing::Values(on_gpus({1}), on_gpus({1, 1}), on_gpus({1, 2, 2}),
                                         on_gpus({1, 1, 2, 2})),
                         name_of_case);

}  // namespace
}  // namespace fleet
