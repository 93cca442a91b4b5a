// Everything that ranks on GPUs do together, once, with data that goes through the host.
#pragma once

#include "comm/communicator.h"
#include "tensor/device.h"

namespace fleet {

// Collective. Throws std::runtime_error naming the first result that is wrong.
void check_all(Communicator& comm, Device& device);

}  // namespace fleet
