// Ranks with an emulated GPU each.
#pragma once

#include <memory>
#include <vector>

#include "backend/cuda/device.h"
#include "tests/engine/comm/contract.h"

namespace fleet {

inline std::unique_ptr<Device> one_gpu() { return std::make_unique<cuda::CudaDevice>(0); }

inline GroupCase on_gpus(const std::vector<int>& host_of_rank) {
  GroupCase group = on_hosts("nccl", host_of_rank);
  group.make_device = one_gpu;
  return group;
}

}  // namespace fleet
