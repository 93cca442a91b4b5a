// This process as one rank of a job: its place in the job as set by the launcher, its device, and
// its communicators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/store_exchange.h"
#include "exec/backend.h"
#include "store/store.h"
#include "train/job.h"
#include "train/saved_batches.h"

namespace fleet {

struct World {
  int rank = 0, size = 1;
  std::vector<std::string> nodes;  // the address of each rank's node, by rank
  std::shared_ptr<Store> store;    // shared by the ranks; null in a job of one rank
  // Parameter servers, "host:port" by number; empty: collective training. The ranks are trainers.
  std::vector<std::string> servers = {};
  int server = -1;  // the number of this process among them; -1: it is a trainer
  // Of a trainer that takes the place of a lost one: how often its rank was replaced, from 1. The
  // training steps that the lost process had done.
  int replacement = 0;
  int64_t replaced_step = 0;
  int node_count() const;
};

// Reads the environment that fleetrun sets (PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM,
// PADDLE_TRAINER_ENDPOINTS, FLEET_STORE_ADDRESS, ...); without it, a job of one rank. With
// parameter servers also TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, POD_IP and PADDLE_PORT.
// kUsage if there are several processes and no Store, and for a role without its variables.
World world_from_env();
// World::servers and World::server alone. kUsage and kUnsupported as above.
std::vector<std::string> servers_from_env();
int server_from_env();

// Communicators between the ranks of a job: one for the memory of the device, one for that of the
// host.
struct JobCommunicators {
  std::unique_ptr<Communicator> compute;  // null in a job of one rank
  std::unique_ptr<Communicator> control;  // null if `compute` uses host memory too
  // What `compute` goes through in a job whose trainers run apart; else null.
  std::shared_ptr<StoreExchange> exchange = nullptr;
};

// Collective, once for each World: all ranks must call it. Compares the jobs of all ranks first
// (train/start_comparison.h). The device must outlive the connection. Errors of StartComparison and
// make_communicator().
JobCommunicators make_job_communicators(const Job& job, const World& world, Device& device);

// The job of this tree; with strategy.auto, all ranks choose settings of the strategy together
// first. Collective. own_batches: the program makes its batches, so their size is not changed;
// start: else it stays as in the checkpoint from which this start continues.
// Errors of make_job() and choose_strategy_at_start().
Job make_job_at_start(const ConfigTree& tree, const World& world, Device& device,
                      const JobCommunicators& communicators, bool own_batches = false,
                      const RunStart& start = {});

// Chooses the device of this rank (train.device and FLAGS_selected_gpus). Logs one line with the
// reason if train.device is auto and the choice is the CPU, and one with the settings that have no
// effect there; verbose: whether to log them. Errors of choose_device(); kUnsupported if
// train.device is cuda and no GPU can be used.
DeviceChoice choose_job_device(const Job& job, bool verbose);
// Like the above, to print what a rank would run: logs nothing, and chooses the CPU if there is no
// GPU.
DeviceChoice choose_device_to_print(const Job& job);
// The backend of the device that choose_job_device() would choose, without making the device.
std::string job_backend(const Job& job);

}  // namespace fleet
