// The parameter servers of a job, from both sides.
#pragma once

#include <atomic>

#include "api/world.h"
#include "train/job.h"
#include "train/served_job.h"

namespace fleet {

// Runs this process as a parameter server (World::server) until all trainers have ended, or a
// signal came (*stop is not 0) before a trainer connected. Errors of ps::run_server().
void serve(const Job& job, const World& world, const std::atomic<int>* stop);

// For the trainers of a job; without servers, none. All must outlive it. device: the trainer's.
Servers servers_of(const Job& job, const World& world, Device& device);

}  // namespace fleet
