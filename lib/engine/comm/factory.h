// Creates communicators. The default transport follows from the hosts of the ranks.
#pragma once

#include <chrono>
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
  // listen on this rank's own entry. Empty: all ranks are on one host.
  std::vector<std::string> nodes = {};
  // The rendezvous store. May be null if size is 1.
  std::shared_ptr<Store> store;
  // Distinguishes the communicators of one store: each needs a unique name.
  std::string group = "world";
  // "auto": nccl on GPUs; otherwise shm on one host, gloo for hosts with one rank each, and
  // hierarchical in all other cases. Or the name of a registered backend.
  std::string backend = "auto";
  // Device whose memory the views point to; null: the host. Must outlive the communicator.
  Device* device = nullptr;
  // How long an operation waits for a rank that neither arrives nor dies.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  // Names of the ranks in messages, by rank; empty: 0, 1, ... For groups inside a larger one.
  std::vector<int> names = {};
};

// The keys "comm.backend" and "comm.timeout" (seconds) of a job file, without the prefix "comm".
Schema comm_schema();
// Reads backend and timeout from settings of that schema.
void apply(const Settings& settings, CommOptions* options);

// Collective: every rank of the group makes the same call with its own rank. Its calls, and those
// of communicators split from it, are recorded (recorded_communicator.h). Throws kTimeout, naming
// the ranks that did not arrive, and kUsage for invalid options.
std::unique_ptr<Communicator> make_communicator(const CommOptions& options);

// A transport. "auto" is none.
struct CommBackendDef {
  std::unique_ptr<Communicator> (*make)(const CommOptions& options) = nullptr;
};
Registry<CommBackendDef>& comm_backends();

// FLEET_COMM_BACKEND(gloo) { def.make = ...; } in lib/engine/comm/gloo.cc.
#define FLEET_COMM_BACKEND(name)                                    \
  FLEET_REGISTER(comm_backend_##name, ::fleet::CommBackendDef& def, \
                 ::fleet::comm_backends().define, #name)

// The backend that "auto" selects for these options.
std::string choose_backend(const CommOptions& options);

}  // namespace fleet
