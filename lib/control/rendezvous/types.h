// What nodes and the rendezvous tell each other. Messages of control.proto are used as they are.
// The structs here are not sent, or not in this form: each says why.
//
// A *node* is one fleetrun process, a *rank* one process that it starts. Node 0 hosts the
// rendezvous and is a client of it like every other node.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "rendezvous/control_messages.h"

namespace fleet {

using wire::GenerationResult;
using wire::JoinProgress;
using wire::PeerEvent;
using wire::RankExit;
using wire::RankStack;
using wire::RankStall;
using wire::RankSteps;
using wire::RecordedError;
using wire::RestartCommand;
using wire::SignalCommand;
using wire::StackCommand;
using wire::StackReport;
using wire::Stacks;
using wire::StepReport;
using wire::StopCommand;
using wire::Verdict;

// The version of the messages. Nodes of another version are refused.
inline constexpr int kRendezvousProtocol = 5;

// Restart policy of a failed job. The user-visible values travel as JobSpec::agreed_config.
struct RestartPolicy {
  int max_restarts = 0;  // after failures; 0: a failure ends the job
  // This many restarts in a row without progress end the job (kNoProgress); 0: no limit.
  int no_progress_restarts = 3;
  // A rank's exit code after which a restart cannot help, such as that of wrong input; 0: none.
  int final_exit = 0;
  std::chrono::milliseconds elastic_timeout{
      30'000};  // --elastic_timeout: for a node to join or to return
};

// What every node of a job must agree on; not a message, because the host keeps more than a Join
// brings: the restart policy and the minimum of nodes. A node whose values differ from the host's
// is refused with the difference.
struct JobSpec {
  std::string job_id = "default";
  int nnodes = 1;     // nodes that run; with restarts, surplus nodes wait as spares
  int min_nodes = 0;  // the job may run with this many; 0: only with all
  // The nodes as listed by --ips, in the order of their ranks; empty if nodes are only counted
  // (--nnodes).
  std::vector<std::string> addresses;
  // Replaces a long list in a node's Join (digest_of()); 0: the list is present.
  uint64_t addresses_digest = 0;
  RestartPolicy restarts;
  std::string version;  // of fleetrun
  int protocol = kRendezvousProtocol;
  // Other values that must be the same on every node, by the name a user knows: {"--run_mode",
  // "collective"}.
  std::map<std::string, std::string> agreed_config;
  // Values whose differences change results or cause hangs: versions, libraries, files, environment
  // ({"NCCL_DEBUG", "INFO"}). A difference is refused like the above, unless one of the two nodes
  // sets allow_skew: then it is a warning.
  std::map<std::string, std::string> fingerprint;
  bool allow_skew = false;

  int required_nodes() const { return min_nodes > 0 ? min_nodes : nnodes; }
};

// A digest of a node list, the same in every process; never 0.
uint64_t digest_of(const std::vector<std::string>& addresses);

// Identifies a world: two parts of a partitioned job may count the same generation.
struct WorldId {
  int generation = 0;  // 0: none
  std::string leader;  // the instance that created it

  bool operator==(const WorldId&) const = default;
};

// A node's description in its Join, beside the job that it belongs to.
struct NodeInfo {
  JobSpec job;
  std::string address;  // as listed in --ips, or where other nodes reach this one; unique in a job
  int node_rank = -1;   // -1: by arrival: the host is 0, the others follow sorted by address
  bool hosts_rendezvous = false;
  std::vector<std::vector<int>>
      devices;             // one entry a rank of this node: its device ids (empty: CPU)
  std::vector<int> ports;  // one a rank: its endpoint's port, already bound by the agent
  int servers = 0;         // the first so many are parameter servers, the rest trainers
  std::vector<int> ranks;  // number of each among the servers or the trainers; empty: by node
  int master_port = 0;     // MASTER_PORT, bound by a node that may become node 0; 0 elsewhere
  int rdzv_port = 0;  // where it would host the rendezvous after a loss of the host; 0: it cannot
  std::string role = "default";  // torchrun's --role, of all of its trainers
  std::string hostname;
  std::string instance;  // distinguishes processes at the same address; set by the client
  // For a node that has lost its host and follows the next one: the last world that it accepted,
  // and the last one that it knows to count (the same, or the preceding one).
  WorldId last, committed;

  int nproc() const { return static_cast<int>(ports.size()); }
};

struct NodePlacement {
  std::string address;
  std::string hostname;
  int node_rank = 0;
  int first_rank = 0;  // global rank of its first trainer
  std::vector<std::vector<int>> devices;
  std::vector<int> ports;
  // For a job with parameter servers: as in NodeInfo.
  int servers = 0;
  int first_server = 0;
  std::vector<int> ranks = {};
  int rdzv_port = 0;             // as in NodeInfo
  std::string role = "default";  // as in NodeInfo

  int nproc() const { return static_cast<int>(ports.size()); }
  int trainers() const { return nproc() - servers; }
  bool is_server(int local_rank) const { return local_rank < servers; }
  // Its number in the whole job: among the servers, or its global rank.
  int rank_of(int local_rank) const {
    if (!ranks.empty()) return ranks.at(static_cast<size_t>(local_rank));
    return is_server(local_rank) ? first_server + local_rank : first_rank + local_rank - servers;
  }
};

// The whole job of one generation; the same object for every node. Not a message: on the wire,
// equal nodes share a Shape and a large world is compressed (world_wire.h).
struct World {
  int generation = 1;
  std::string leader;                // the process that created it
  std::string run;                   // the process that created the first world; constant for a job
  WorldId base;                      // its predecessor
  int restarts = 0;                  // after failures, so far
  int world_size = 0;                // trainers
  int servers = 0;                   // parameter servers
  std::vector<NodePlacement> nodes;  // by node rank
  std::string master_address;        // node 0's
  int master_port = 0;

  WorldId id() const { return {generation, leader}; }
};

// A shared world, possibly still packed as received: unpacking that of a large job takes
// milliseconds and megabytes, so it happens on first access. Thread-safe.
class SharedWorld {
 public:
  using Unpack = std::function<std::shared_ptr<const World>()>;

  SharedWorld() = default;
  template <std::convertible_to<std::shared_ptr<const World>> Pointer>
  SharedWorld(Pointer world) : world_(std::move(world)) {}  // NOLINT: stands for one
  // unpack() may throw; then so does the accessor.
  explicit SharedWorld(Unpack unpack);

  // Null if there is no world, like any pointer.
  const World* get() const { return share().get(); }
  operator std::shared_ptr<const World>() const { return share(); }  // NOLINT
  const World& operator*() const { return *share(); }
  const World* operator->() const { return share().get(); }
  friend bool operator==(const SharedWorld& a, const SharedWorld& b) { return a.get() == b.get(); }

 private:
  struct Packed;
  const std::shared_ptr<const World>& share() const;

  std::shared_ptr<const World> world_;
  std::shared_ptr<Packed> packed_;  // set while there is no world_
};

// A node's part. The generation increases with every (re)start of the job.
struct Assignment {
  SharedWorld world;
  int node_rank = 0;
  std::string store_address;  // this node's ranks pass it to connect_store()

  int generation() const { return world->generation; }
  int nnodes() const { return static_cast<int>(world->nodes.size()); }
  int world_size() const { return world->world_size; }
  const NodePlacement& node() const { return world->nodes.at(node_rank); }
  int first_rank() const { return node().first_rank; }
};

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
// The time between the stop signal to ranks and SIGKILL; nullopt: each launcher's own --grace.
using Grace = std::optional<std::chrono::milliseconds>;
// The rendezvous is lost, and the nodes look for its next host: stop all ranks. The events of a
// RestartCommand follow, or the end.
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
};
// It is this node's turn to host the rendezvous: open it at `port`, then call follow().
struct TakeOver {
  int port = 0;
  FailoverState from;
};
// In the order in which they happen; the host's messages as they came, except Welcome, Start and
// Heartbeat: JoinProgress* (Refusal | Assignment (PeerEvent | StopCommand | SignalCommand |
// StackCommand | StackReport)* (RestartCommand JoinProgress* Assignment ...)* Verdict). A Verdict
// may also replace an Assignment if the job is stopped while forming, or ends while this node is a
// spare.
using RendezvousEvent = std::variant<wire::HostMessage, Refusal, Assignment, HostLost, TakeOver>;

}  // namespace fleet
