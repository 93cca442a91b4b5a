// The GPU of a rank program of these tests: a real one, or the emulated one with a fake NCCL.
#pragma once

#include <memory>

#include "tensor/device.h"

namespace fleet {

// Before the first call of NCCL. Throws where there is none.
std::unique_ptr<Device> gpu_of_rank(int rank);

}  // namespace fleet
