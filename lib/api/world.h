// This process as one rank of a job: what the launcher told it, the device it computes on, and how
// it reaches the other ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "exec/backend.h"
#include "store/store.h"
#include "train/job.h"

namespace fleet {

struct World {
  int rank = 0, size = 1;
  std::vector<std::string> nodes;  // the address of each rank's node, by rank
  std::shared_ptr<Store> store;    // where the ranks meet; null in a job of one rank
  int node_count() const;
};

// From the environment that fleetrun sets (PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM,
// PADDLE_TRAINER_ENDPOINTS, FLEET_STORE_ADDRESS, ...); alone a job of one rank. kUsage where there
// are several ranks and no Store.
World world_from_env();

// What the ranks of a job reach each other by: the device's memory, and the host's.
struct Connection {
  std::unique_ptr<Communicator> compute;  // null in a job of one rank
  std::unique_ptr<Communicator> control;  // null where `compute` is of the host's memory too
};

// Collective, once for each World: all ranks call it alike. Compares the jobs of all ranks first
// (train/same_start.h). The device must outlive the connection. Errors of StartComparison and
// make_communicator().
Connection connect(const Job& job, const World& world, Device& device);

// Where this rank computes (train.device and FLAGS_selected_gpus). One line of the log says why it
// is the CPU where train.device is auto, and one what has no effect there; speaks: whether they are
// printed. Errors of choose_device(); kUnsupported where train.device is cuda and no GPU can be
// used.
DeviceChoice choose_job_device(const Job& job, bool speaks);
// The same for printing what a rank would run: says nothing, and without a GPU it is the CPU.
DeviceChoice choose_device_to_print(const Job& job);

}  // namespace fleet
