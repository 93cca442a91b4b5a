// Messages between nodes and the rendezvous, as plain structs. No protobuf and no gRPC here.
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

namespace fleet {

// The version of the messages. Nodes of another version are refused.
inline constexpr int kRendezvousProtocol = 4;

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

// What every node of a job must agree on. A node whose values differ from the host's is refused
// with the difference.
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

// A node's description in its Join.
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

// The whole job of one generation; the same object for every node.
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

// A program's record of its own failure: torch.distributed's @record writes it into the file that
// TORCHELASTIC_ERROR_FILE names.
struct RecordedError {
  std::string message;    // "KeyError: 'missing_key'"; empty: nothing recorded
  std::string callstack;  // the traceback; may be empty
  int64_t unix_time = 0;  // in seconds; 0: unknown

  bool empty() const { return message.empty(); }
  bool operator==(const RecordedError&) const = default;
};

// A rank that ended. Failed: code != 0 or signal != 0.
struct RankExit {
  int rank = -1;        // global; for a parameter server: among the servers
  bool server = false;  // a parameter server
  int local_rank = -1;
  int node_rank = -1;         // filled in by the rendezvous
  int code = 0;               // exit code, if signal is 0
  int signal = 0;             // the signal that ended it, or 0
  bool killed_by_us = false;  // stopped by the launcher: never a root cause
  bool oom = false;           // killed by the kernel because memory ran out
  std::chrono::milliseconds ran_for{0};
  // When it ended: on its node's steady clock; after the report, on the clock of the rendezvous
  // host. at_error_ns bounds the error; < 0: unknown.
  int64_t at_ns = 0;
  int64_t at_error_ns = -1;
  std::string log_path;
  std::string tail;  // the last lines of its log, with colours; at most 64 KiB are sent
  // The program's own reason, in one line: "KeyError: 'missing_key'". "" if it gave none. At most 4
  // KiB are sent.
  std::string cause;
  std::string note;     // further findings for the message: "the kernel killed it: out of memory"
  RecordedError error;  // the cause, if the program recorded it

  bool failed() const { return code != 0 || signal != 0; }
};

// What a rank was doing when the job hung.
struct RankStack {
  int rank = -1;
  bool server = false;
  int local_rank = -1;
  int node_rank = -1;               // filled in by the rendezvous
  char state = '?';                 // as in /proc/PID/stat: R, S, D, T
  std::string channel;              // the kernel function in which it waits; "" if unknown
  std::vector<std::string> frames;  // function names of its first thread, innermost first
  std::string missing;              // why there are no frames
};
// A rank has made no progress for --hang_timeout.
struct RankStall {
  int rank = -1;
  bool server = false;
  int local_rank = -1;
  std::chrono::milliseconds quiet_for{0};
  std::string log_path;
  int64_t step = -1;  // the last finished step; -1: not counted
};
// A rank's progress, by its own count (observe/rank_progress.h).
struct RankSteps {
  int rank = -1;  // global
  int local_rank = -1;
  int node_rank = -1;      // filled in by the rendezvous
  int64_t steps = 0;       // of its process
  int64_t step = 0;        // of the whole training
  int64_t step_at_ns = 0;  // when the last step ended, on its node's clock
  int64_t waited_ns = 0;   // time spent waiting for other ranks, up to step_at_ns
};

enum class VerdictKind {
  kSuccess,     // every rank of every node ended with 0
  kRankFailed,  // `exit` is the first failing rank of the whole job
  kNodeLost,    // node_rank's fleetrun vanished, fell silent or left early
  kHang,        // `exit` is the most likely hung rank, without code or signal
  kStopped,     // a launcher received `signal`, and all nodes have stopped
  kNoProgress,  // it failed repeatedly without progress; `exit` as of the last failure
  kResized,     // of a generation, never of a job: it continues with nodes that have joined
};
const char* name_of(VerdictKind kind);

// How a generation of a restarted job ended.
struct GenerationResult {
  int generation = 0;
  int nnodes = 0, world_size = 0;
  VerdictKind kind = VerdictKind::kSuccess;
  std::string message;  // as in a Verdict
  std::chrono::milliseconds ran_for{0};
  int64_t step = -1;  // the last reported step; -1: none
};

// How the job ended: the same on every node.
struct Verdict {
  VerdictKind kind = VerdictKind::kSuccess;
  int generation = 0;
  int node_rank = -1;  // of the failed rank, the lost node or the stopping launcher
  std::string node;    // its address
  std::string hostname;
  int signal = 0;  // kStopped: the signal to the launcher
  RankExit exit;   // kRankFailed, kHang, kNoProgress
  // One or more lines for the user: what failed, where, what to do; without the tail.
  std::string message;
  int restarts = 0;                       // after failures
  std::vector<GenerationResult> history;  // all generations of a restarted job; the newest 100

  bool ok() const { return kind == VerdictKind::kSuccess; }
};
// Whether `exit` names a rank.
bool names_rank(const Verdict& verdict);

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

// --- Events of a node, in the order in which they happen ---

// A line for the user while nodes are missing or are refused.
struct JoinProgress {
  std::string line;
};
// This node does not take part in the job: error.code() is kUsage (mismatch, duplicate), kTimeout
// (nodes are missing, or the rendezvous cannot be reached), kStale (the job already runs or is
// over). The last event.
struct Refusal {
  Error error;
};
// The time between the stop signal to ranks and SIGKILL; nullopt: each launcher's own --grace.
using Grace = std::optional<std::chrono::milliseconds>;
// Send this signal to all ranks and kill them after the grace time; report exits, then call
// finish().
struct StopCommand {
  int signal = 0;
  int node_rank = -1;  // the node whose launcher received the request
  std::string node;
  bool kill = false;  // kill at once
  Grace grace = {};
};
// The generation is over, the job is not: stop all ranks, then call ready(). An Assignment of a
// later generation follows, or the end.
struct RestartCommand {
  int generation = 0;    // the generation that is over
  Verdict cause;         // without history
  GenerationResult end;  // the same for the history
  int restart = 0;       // ordinal of this restart; 0 if no failure caused it
  int of = 0;            // number of restarts allowed
};
// Send this signal to all ranks; nothing else changes.
struct SignalCommand {
  int signal = 0;
  int node_rank = -1;  // the node whose launcher received it
};
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
// Call send_stacks() for all ranks of this node soon.
struct StackCommand {
  int node_rank = -1;  // where a hang was noticed or stacks were requested
  bool hang = true;
};
// The answer to request_stacks().
struct StackReport {
  std::vector<RankStack> stacks;
  std::vector<int> silent;  // nodes that sent none
};
// News of another node, for the log.
struct PeerEvent {
  enum class Kind { kFinished, kLost, kStraggler } kind = Kind::kFinished;
  int node_rank = -1;
  std::string node;
  std::string line;
};
// JoinProgress* (Refusal | Assignment (PeerEvent | StopCommand | SignalCommand | StackCommand |
// StackReport)* (RestartCommand JoinProgress* Assignment ...)* Verdict). A Verdict may also replace
// an Assignment if the job is stopped while forming, or ends while this node is a spare.
using RendezvousEvent =
    std::variant<JoinProgress, Refusal, Assignment, PeerEvent, StopCommand, SignalCommand,
                 StackCommand, StackReport, RestartCommand, HostLost, TakeOver, Verdict>;

}  // namespace fleet
