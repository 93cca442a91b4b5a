#include "comm/factory.h"

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "base/plugin.h"
#include "comm/recorded_communicator.h"

namespace fleet {

Registry<CommBackendDef>& comm_backends() {
  static Registry<CommBackendDef> registry("communication backend");
  return registry;
}

Schema comm_schema() {
  return Schema()
      .choice("backend", "auto", {"auto", "shm", "gloo", "hierarchical", "inprocess", "nccl"},
              "transport of the collectives; auto: nccl on GPUs, else depends on the hosts of the "
              "ranks")
      .number("timeout", 600, 0.001, 1e6,
              "seconds that a collective waits for a rank that neither arrives nor exits");
}

void apply(const Settings& settings, CommOptions* options) {
  options->backend = settings.text("backend");
  options->timeout =
      std::chrono::milliseconds(static_cast<int64_t>(settings.number("timeout") * 1000));
}

namespace {

// The only transport that moves the memory of the device; empty for the host's memory.
std::string device_transport(const CommOptions& options) {
  return options.device ? options.device->communicator() : "";
}

}  // namespace

std::string choose_backend(const CommOptions& options) {
  if (std::string transport = device_transport(options); !transport.empty()) return transport;
  std::map<std::string, int> ranks_on;
  for (const std::string& node : options.nodes) ++ranks_on[node];
  if (ranks_on.size() <= 1) return "shm";
  const bool alone = std::all_of(ranks_on.begin(), ranks_on.end(),
                                 [](const auto& node) { return node.second == 1; });
  return alone ? "gloo" : "hierarchical";
}

namespace {

// nccl moves a GPU's memory, the other backends the host's.
void check_device(const CommOptions& options) {
  const std::string transport = device_transport(options);
  if (transport.empty() ? options.backend != "nccl" : options.backend == transport) return;
  throw Error(ErrorCode::kUsage,
              options.backend + " cannot move the memory of " +
                  (options.device ? options.device->name() : "the host"),
              "comm.backend", "leave it at auto");
}

// The nccl plugin registers itself when it is loaded. Only jobs on several GPUs need its library.
void load_nccl() {
  static Mutex mutex;
  const MutexLock lock(mutex);
  if (comm_backends().find("nccl")) return;
  const std::string reason = load_plugin("fleet_nccl", "NCCL");
  if (reason.empty()) return;
  throw Error(ErrorCode::kUnsupported, "ranks on GPUs cannot communicate: " + reason,
              "communicator", "install NCCL (libnccl.so.2, 2.23 or later), or train on one GPU");
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const CommOptions& given) {
  CommOptions options = given;
  const auto refuse = [](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, what, "communicator", next);
  };
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    refuse("rank " + std::to_string(options.rank) + " of " + std::to_string(options.size),
           "ranks go from 0 to size - 1");
  }
  if (!options.nodes.empty() && options.nodes.size() != static_cast<size_t>(options.size)) {
    refuse(std::to_string(options.nodes.size()) + " node addresses for " +
               std::to_string(options.size) + " ranks",
           "give the address of every rank's node, or none");
  }
  if (options.size > 1 && !options.store) {
    refuse("several ranks without a store", "start them with fleetrun");
  }
  if (!options.store) options.store = make_memory_store();
  if (options.names.empty()) {
    for (int rank = 0; rank < options.size; ++rank) options.names.push_back(rank);
  }
  if (options.nodes.empty()) options.nodes.assign(options.size, "127.0.0.1");
  if (options.backend == "auto") options.backend = choose_backend(options);
  check_device(options);
  if (options.backend == "nccl") load_nccl();
  return std::make_unique<RecordedCommunicator>(comm_backends().get(options.backend).make(options),
                                                options.group, options.names,
                                                !device_transport(options).empty());
}

}  // namespace fleet
