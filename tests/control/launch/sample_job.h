// A job as tests of environments have it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Two nodes of two ranks, each with two GPUs; this is node 1.
inline Assignment sample_job(bool gpu) {
  auto world = std::make_shared<World>();
  world->world_size = 4;
  world->master_address = "10.0.0.1";
  world->master_port = 40000;
  for (int node = 0; node < 2; ++node) {
    NodePlacement placement;
    placement.address = "10.0.0." + std::to_string(node + 1);
    placement.node_rank = node;
    placement.first_rank = 2 * node;
    placement.ports = {6070, 6071};
    placement.devices =
        gpu ? std::vector<std::vector<int>>{{0, 1}, {2, 3}} : std::vector<std::vector<int>>{{}, {}};
    world->nodes.push_back(placement);
  }
  Assignment assignment;
  assignment.world = world;
  assignment.node_rank = 1;
  assignment.store_address = "10.0.0.1:6768";
  return assignment;
}

}  // namespace fleet
