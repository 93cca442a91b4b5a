#include <cstdlib>
#include <string>

#include "base/error.h"
#include "exec/backend.h"
#include "tests/engine/comm/nccl/rank/gpu.h"

namespace fleet {

// All ranks share the first GPU. NCCL refuses that within a host, and takes ranks with different
// NCCL_HOSTID for different hosts.
std::unique_ptr<Device> gpu_of_rank(int rank) {
  ::setenv("NCCL_HOSTID", ("test-" + std::to_string(rank)).c_str(), 1);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  DeviceChoice choice = choose_device("cuda", 0);
  if (choice.device->backend() != "cuda") throw Error(ErrorCode::kUnsupported, choice.note);
  return std::move(choice.device);
}

}  // namespace fleet
