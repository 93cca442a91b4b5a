// The backends between processes and hosts that compute on CPUs keep the contract.
#include "tests/engine/comm/contract.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Inprocess, Contract,
                         testing::Values(on_one_host("inprocess", 1), on_one_host("inprocess", 2),
                                         on_one_host("inprocess", 3), on_one_host("inprocess", 4)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Shm, Contract,
                         testing::Values(on_one_host("shm", 1), on_one_host("shm", 2),
                                         on_one_host("shm", 3), on_one_host("shm", 5)),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(Gloo, Contract,
                         testing::Values(on_hosts("gloo", {1}), on_hosts("gloo", {1, 2}),
                                         on_hosts("gloo", {1, 2, 3}),
                                         on_hosts("gloo", {1, 2, 3, 4}),
                                         on_hosts("gloo", {1, 1, 1, 1, 1})),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Hierarchical, Contract,
                         testing::Values(on_hosts("hierarchical", {1, 1, 2, 2}),
                                         on_hosts("hierarchical", {1, 2, 2}),
                                         on_hosts("hierarchical", {2, 1, 2, 1, 3})),
                         name_of_case);

}  // namespace
}  // namespace fleet
