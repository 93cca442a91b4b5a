// Opens the connections of a pipeline before its first step.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "graph/program.h"
#include "tensor/device.h"

namespace fleet {

// Sends one element over each connection on which the Program sends or receives. NCCL opens a
// connection at its first message, and blocks the host until the other side does too; in a step,
// the other side may first wait for this one. All ranks call this at the same point; it returns
// when this rank's connections are open.
//   communicators  by GroupId
void open_links(const Program& program, const std::vector<Communicator*>& communicators,
                Device& device, Stream& stream);

}  // namespace fleet
