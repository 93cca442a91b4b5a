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
  world->set_master_address("10.0.0.1");
  world->set_master_port(40000);
  for (int node = 0; node < 2; ++node) {
    wire::Node& placed = *world->add_nodes();
    placed.set_address("10.0.0." + std::to_string(node + 1));
    placed.set_role("default");
    add_rank(&placed, gpu ? std::vector<int>{0, 1} : std::vector<int>{}, 6070);
    add_rank(&placed, gpu ? std::vector<int>{2, 3} : std::vector<int>{}, 6071);
  }
  world->mutable_id()->set_generation(1);
  number_ranks(world.get());
  Assignment assignment;
  assignment.world = world;
  assignment.node_rank = 1;
  assignment.store_address = "10.0.0.1:6768";
  return assignment;
}

}  // namespace fleet
