// Messages between nodes and the rendezvous: those of control.proto, used as they are, and
// events that stay within a process.
//
// A *node* is one fleetrun process, a *rank* one process that it starts. Node 0 hosts the
// rendezvous and is a client of it like every other node.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "transport/control_messages.h"

namespace fleet {

namespace control::v1 {
inline bool operator==(const WorldId& a, const WorldId& b) {
  return a.generation() == b.generation() && a.leader() == b.leader();
}
}  // namespace control::v1

// The version of the messages. Nodes of another version are refused.
inline constexpr int kRendezvousProtocol = 12;

// Restart policy of a failed job. The user-visible values are sent as JobConfig.agreed_config.
struct RestartPolicy {
  int max_restarts = 0;  // after failures; 0: a failure ends the job
  // Trainers that are started again in their places, where they can be. Restarts count too.
  int max_replacements = 0;
  // This many restarts in a row without progress end the job (kNoProgress); 0: no limit.
  int no_progress_restarts = 3;
  // A rank's exit code after which a restart cannot help, such as that of wrong input; 0: none.
  int final_exit = 0;
  std::chrono::milliseconds elastic_timeout{
      30'000};  // --elastic_timeout: for a node to join or to return
};

// A job at its host: what the nodes must agree on, and what only the host decides by.
struct JobSpec {
  JobSpec();  // one node, named "default"
  int required_nodes() const { return min_nodes > 0 ? min_nodes : config.nnodes(); }

  wire::JobConfig config;
  int min_nodes = 0;  // the job may run with this many; 0: only with all
  RestartPolicy restarts;
};

// A Join to this job, for its sender to complete. A long list of nodes is replaced by its digest.
wire::Join join_for(const wire::JobConfig& config);
// A digest of a node list, the same in every process; never 0.
uint64_t digest_of(const google::protobuf::RepeatedPtrField<std::string>& addresses);

// Ranks of a node: parameter servers and trainers. They are numbered apart in the whole job.
inline int trainers(const wire::Node& node) { return node.local_world_size() - node.servers(); }
inline bool is_server(const wire::Node& node, int local_rank) {
  return local_rank < node.servers();
}
int rank_of(const wire::Node& node, int local_rank);
// The devices of a rank; empty: CPU.
std::vector<int> devices_of(const wire::Node& node, int local_rank);
void add_rank(wire::Node* node, const std::vector<int>& devices, int port);
// Whether its devices, ports, servers and numbers of ranks fit its local_world_size.
bool is_consistent(const wire::Node& node);
// Fills in what follows from the nodes and their order.
void number_ranks(World* world);

// A shared world, possibly still packed as received: unpacking that of a large job takes
// milliseconds and megabytes, so it happens on first access. Thread-safe.
class SharedWorld {
 public:
  using Unpack = std::function<std::shared_ptr<const World>()>;

  SharedWorld() = default;
  template <std::convertible_to<std::shared_ptr<const World>> Pointer>
  SharedWorld(Pointer world) : world_(std::move(world)) {}  // NOLINT: stands for one
  // unpack() may throw; then so does the accessor.
  explicit SharedWorld(Unpack unpack)
      : packed_(std::async(std::launch::deferred, std::move(unpack)).share()) {}

  // Null if there is no world, like any pointer.
  const World* get() const { return share().get(); }
  operator std::shared_ptr<const World>() const { return share(); }  // NOLINT
  const World& operator*() const { return *share(); }
  const World* operator->() const { return share().get(); }
  friend bool operator==(const SharedWorld& a, const SharedWorld& b) { return a.get() == b.get(); }

 private:
  const std::shared_ptr<const World>& share() const {
    return packed_.valid() ? packed_.get() : world_;
  }

  std::shared_ptr<const World> world_;
  std::shared_future<std::shared_ptr<const World>> packed_;  // valid: instead of world_
};

// A node's part. The generation increases with every (re)start of the job.
struct Assignment {
  SharedWorld world;
  int node_rank = 0;
  std::string store_address;  // this node's ranks pass it to connect_store()

  int generation() const { return world->id().generation(); }
  int nnodes() const { return world->nodes_size(); }
  int world_size() const { return world->world_size(); }
  const wire::Node& node() const { return world->nodes(node_rank); }
};

// A World in bytes: encoded once for all nodes, and unpacked on first access.
//
// A serialized wire::HostMessage with only this world. Appended to a serialized HostMessage with an
// assignment (without its world), it completes that message. 12,500 nodes of 8 ranks take less than
// 4 bytes per node.
std::string encode(const World& world);
// Throws kInternal if the assignment is invalid; errors inside `world` appear when it is unpacked.
Assignment decode(wire::Assignment in);

const char* name_of(Verdict::Kind kind);
bool failed(const RankExit& exit);
bool succeeded(const Verdict& verdict);

// Exit codes of fleetrun that are not a rank's own and not 128 + signal. 114 is kExitPeerLost.
inline constexpr int kExitRendezvous = 112;  // nodes are missing (Refusal of kTimeout)
inline constexpr int kExitNodeLost = 113;
inline constexpr int kExitHang = 115;
inline constexpr int kExitNoProgress = 116;  // restarts did not help
inline constexpr int kExitPreflight = 117;   // a check before the start failed

// fleetrun's exit code: the rank's code, 128 + its signal, 128 + the launcher's signal, or
// kExitNodeLost.
int exit_code_for(const Verdict& verdict);

// Like exit_code_for(), for a launcher that ends by an error. A rank exits with kExitPeerLost on
// kPeerLost; a launcher never does: for it, the loss of another launcher or of a fleetd is a lost
// node.
inline int launcher_exit_code(ErrorCode code) {
  return code == ErrorCode::kPeerLost ? kExitNodeLost : exit_code_for(code);
}

// "10.0.0.2, host gpu07"; without the host if the address implies it or is loopback.
std::string node_label(const std::string& address, const std::string& hostname);
// One line: "rank 3 of 4 exited with 7: KeyError: 'x' (log/workerlog.1)"; with several nodes it
// also names the file's node.
std::string headline(const RankExit& exit, int world_size, int nnodes);
// "rank 3 (local rank 1) on node 1 (10.0.0.2) exited with code 7 after 12.3 s" / "was killed by
// SIGKILL". `node`: its node_label().
std::string describe(const RankExit& exit, const std::string& node);
// "SIGTERM", or "signal 77" where it has no name.
std::string signal_name(int signal);

// Lines for users, as messages to nodes.
wire::HostMessage join_progress(std::string line);
wire::HostMessage peer_event(PeerEvent::Kind kind, int node_rank, std::string node,
                             std::string line);

// --- Events of a node ---

// This node does not take part in the job: error.code() is kUsage (mismatch, duplicate), kTimeout
// (nodes are missing, or the rendezvous cannot be reached), kStale (the job already runs or is
// over). The last event.
struct Refusal {
  Error error;
};
// The rendezvous is lost or has given up on this node, which looks for the job's host: stop all
// ranks. The events of a RestartCommand follow, or an Assignment, or the end.
struct HostLost {
  int generation = 0;
  std::string line;
};
// The state from which the next host continues.
struct FailoverState {
  SharedWorld base;    // the last world received
  SharedWorld before;  // the preceding one, if it is not known whether `base` counts
  std::vector<GenerationResult> history;
  int lost = 0;     // rank of the lost host in `base`
  std::string how;  // and how it was lost
  std::chrono::milliseconds ran_for{0};
  std::optional<int64_t> step;  // that this node's ranks have reached in `base`
};
// It is this node's turn to host the rendezvous: open it at `port`, then call follow().
struct TakeOver {
  int port = 0;
  FailoverState from;
};
// This node no longer hosts the rendezvous: close it. The events of HostLost continue.
struct StepDown {};
// In the order in which they happen; the host's messages as they came, except Welcome, Start and
// Heartbeat: JoinProgress* (Refusal | Assignment (PeerEvent | StopCommand | SignalCommand |
// StackCommand | StackReport | LiveReport)* (RestartCommand JoinProgress* Assignment ...)*
// Verdict). A Verdict may also replace an Assignment if the job is stopped while forming, or ends
// while this node is a spare.
using RendezvousEvent =
    std::variant<wire::HostMessage, Refusal, Assignment, HostLost, TakeOver, StepDown>;

}  // namespace fleet
