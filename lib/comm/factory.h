// Makes communicators: which transport the ranks of a group use follows from where they run.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "comm/communicator.h"
#include "store/store.h"

namespace fleet {

struct CommOptions {
  int rank = 0;
  int size = 1;
  // The address of each rank's node, by rank; ranks with equal text share a host. TCP transports
  // listen on the own rank's. Empty: all ranks on one host.
  std::vector<std::string> nodes;
  // Where the ranks meet. May be null where size is 1.
  std::shared_ptr<Store> store;
  // Tells the communicators of one store apart: each one made needs a name of its own.
  std::string group = "world";
  // "auto": nccl on GPUs; else shm on one host, gloo for hosts with one rank each, else
  // hierarchical. Or the name of a registered backend.
  std::string backend = "auto";
  // Whose memory the views point to; null: the host's. Outlives the communicator.
  Device* device = nullptr;
  // How long an operation waits for a rank that neither comes nor dies.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  // What messages call the ranks, by rank; empty: 0, 1, ... For groups inside a larger one.
  std::vector<int> names;
};

// The keys "comm.backend" and "comm.timeout" (seconds) of a job file, without the prefix "comm".
Schema comm_schema();
// Takes backend and timeout from settings of that schema.
void apply(const Settings& settings, CommOptions* options);

// Collective: every rank of the group calls it alike, each with its own rank. Throws kTimeout
// naming the ranks that did not come, kUsage on impossible options.
std::unique_ptr<Communicator> make_communicator(const CommOptions& options);

// Backends register here (a CommRegistrar at namespace scope of their file); "auto" is not one.
using CommFactory = std::function<std::unique_ptr<Communicator>(const CommOptions&)>;
Registry<CommFactory>& comm_backends();
struct CommRegistrar {
  CommRegistrar(const std::string& name, CommFactory factory) {
    comm_backends().add(name, std::move(factory));
  }
};

// The backend that "auto" stands for.
std::string choose_backend(const CommOptions& options);

}  // namespace fleet
