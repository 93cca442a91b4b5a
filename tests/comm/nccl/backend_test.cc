// NCCL's communicator keeps the contract of all communicators.
#include "backend/cuda/device.h"
#include "tests/comm/contract.h"

namespace fleet {
namespace {

GroupCase on_gpus(const std::vector<int>& host_of_rank) {
  GroupCase group = on_hosts("nccl", host_of_rank);
  group.make_device = [] { return std::make_unique<cuda::CudaDevice>(0, DeviceOptions{}); };
  return group;
}

INSTANTIATE_TEST_SUITE_P(Nccl, Contract,
                         testing::Values(on_gpus({1}), on_gpus({1, 1}), on_gpus({1, 2, 2}),
                                         on_gpus({1, 1, 2, 2})),
                         name_of_case);

}  // namespace
}  // namespace fleet
