// What nodes and the rendezvous say to each other, as plain structs. No protobuf and no gRPC here.
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
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"

namespace fleet {

// The version of the messages. Nodes of another version are refused.
inline constexpr int kRendezvousProtocol = 4;

// Whether and how a job that failed starts again. The user-visible ones travel as JobSpec::agreed.
struct RestartPolicy {
  int max_restarts = 0;  // after failures; 0: a failure ends the job
  // So many restarts in a row that came no further end the job (kNoProgress); 0: any number may.
  int no_progress_restarts = 3;
  std::chrono::milliseconds wait{30'000};  // --elastic_timeout: for a node to come, or come back
};

// What every node of a job must agree on. A node whose values differ from the host's is refused
// with the difference.
struct JobSpec {
  std::string job_id = "default";
  int nnodes = 1;     // how many run; more wait as spares, where restarts are allowed
  int min_nodes = 0;  // the job also runs with so many; 0: only with all
  // The nodes as listed by --ips, in the order of their ranks; empty where nodes are only counted
  // (--nnodes).
  std::vector<std::string> addresses;
  // Stands for a long list in what a node brings (digest_of()); 0: the list is there.
  uint64_t addresses_digest = 0;
  RestartPolicy restarts;
  std::string version;  // fleetrun's own
  int protocol = kRendezvousProtocol;
  // Anything else that must be the same everywhere, by the name a user knows: {"--run_mode",
  // "collective"}.
  std::map<std::string, std::string> agreed;
  // What makes results differ or a job hang where it is not the same everywhere: versions,
  // libraries, files, environment ({"NCCL_DEBUG", "INFO"}). A difference is refused like the above,
  // unless one of the two says allow_skew: then it is a warning.
  std::map<std::string, std::string> alike;
  bool allow_skew = false;

  int fewest() const { return min_nodes > 0 ? min_nodes : nnodes; }
};

// Tells lists of nodes apart, the same in every process; never 0.
uint64_t digest_of(const std::vector<std::string>& addresses);

// Tells worlds apart: two parts of a job that fell apart may count the same epoch.
struct WorldName {
  int epoch = 0;       // 0: none
  std::string leader;  // the instance that gave it out

  bool operator==(const WorldName&) const = default;
};

// What a node brings when it joins.
struct NodeInfo {
  JobSpec job;
  std::string address;  // as listed in --ips, or where other nodes reach this one; unique in a job
  int node_rank = -1;   // -1: by arrival: the host is 0, the others follow sorted by address
  bool hosts_rendezvous = false;
  std::vector<std::vector<int>>
      devices;             // one entry a rank of this node: its device ids (empty: CPU)
  std::vector<int> ports;  // one a rank: its endpoint's port, already bound by the agent
  int servers = 0;         // the first so many of them are parameter servers, the rest trainers
  std::vector<int> ranks;  // each one's number among the servers or the trainers; empty: by node
  int master_port = 0;     // MASTER_PORT, bound by whoever may become node 0; 0 elsewhere
  int rdzv_port = 0;       // where it would host the rendezvous, were the host lost; 0: it cannot
  std::string role = "default";  // torchrun's --role, of all of its trainers
  std::string hostname;
  std::string instance;  // tells this process from a second one of the same address; filled in by
                         // the client
  // Of a node that has lost its host and follows the next one: the last world that it has accepted,
  // and the last one that it knows to count (the same, or the one before).
  WorldName last, proven;

  int nproc() const { return static_cast<int>(ports.size()); }
};

struct NodePlacement {
  std::string address;
  std::string hostname;
  int node_rank = 0;
  int first_rank = 0;  // global rank of its first trainer
  std::vector<std::vector<int>> devices;
  std::vector<int> ports;
  // Of a job with parameter servers: as NodeInfo has them.
  int servers = 0;
  int first_server = 0;
  std::vector<int> ranks = {};
  int rdzv_port = 0;             // as NodeInfo has it
  std::string role = "default";  // as NodeInfo has it

  int nproc() const { return static_cast<int>(ports.size()); }
  int trainers() const { return nproc() - servers; }
  bool is_server(int local_rank) const { return local_rank < servers; }
  // Its number in the whole job: among the servers, or its global rank.
  int rank_of(int local_rank) const {
    if (!ranks.empty()) return ranks.at(static_cast<size_t>(local_rank));
    return is_server(local_rank) ? first_server + local_rank : first_rank + local_rank - servers;
  }
};

// The whole job of one epoch; the same object for every node.
struct World {
  int epoch = 1;
  std::string leader;                // which process gave it out
  std::string run;                   // and which the first one: the same in every epoch of a job
  WorldName base;                    // the one that it follows
  int restarts = 0;                  // after failures, so far
  int world_size = 0;                // trainers
  int servers = 0;                   // parameter servers
  std::vector<NodePlacement> nodes;  // by node rank
  std::string master_address;        // node 0's
  int master_port = 0;

  WorldName name() const { return {epoch, leader}; }
};

// A world that everyone shares, perhaps still packed as it came: of a large job it takes
// milliseconds and megabytes to unpack, which happens when somebody first looks. Thread-safe.
class SharedWorld {
 public:
  using Unpack = std::function<std::shared_ptr<const World>()>;

  SharedWorld() = default;
  template <std::convertible_to<std::shared_ptr<const World>> Pointer>
  SharedWorld(Pointer world) : world_(std::move(world)) {}  // NOLINT: stands for one
  // unpack() may throw; then so does whoever looks.
  explicit SharedWorld(Unpack unpack);

  // Null where there is none, as for every pointer.
  const World* get() const { return share().get(); }
  operator std::shared_ptr<const World>() const { return share(); }  // NOLINT
  const World& operator*() const { return *share(); }
  const World* operator->() const { return share().get(); }
  friend bool operator==(const SharedWorld& a, const SharedWorld& b) { return a.get() == b.get(); }

 private:
  struct Packed;
  const std::shared_ptr<const World>& share() const;

  std::shared_ptr<const World> world_;
  std::shared_ptr<Packed> packed_;  // where there is no world_
};

// A node's part. The epoch rises with every (re)start of the job.
struct Assignment {
  SharedWorld world;
  int node_rank = 0;
  std::string store_address;  // what this node's ranks give to connect_store()

  int epoch() const { return world->epoch; }
  int nnodes() const { return static_cast<int>(world->nodes.size()); }
  int world_size() const { return world->world_size; }
  const NodePlacement& node() const { return world->nodes.at(node_rank); }
  int first_rank() const { return node().first_rank; }
};

// What a program wrote about its own failure: torch.distributed's @record writes it into the file
// that TORCHELASTIC_ERROR_FILE names.
struct RecordedError {
  std::string message;    // "KeyError: 'missing_key'"; empty: it wrote nothing
  std::string callstack;  // the traceback; may be empty
  int64_t unix_time = 0;  // in seconds; 0: unknown

  bool empty() const { return message.empty(); }
  bool operator==(const RecordedError&) const = default;
};

// A rank that ended, well or badly. Failed: code != 0 or signal != 0.
struct RankExit {
  int rank = -1;        // global; among the servers for one of them
  bool server = false;  // a parameter server
  int local_rank = -1;
  int node_rank = -1;         // filled in by the rendezvous
  int code = 0;               // exit code, where signal is 0
  int signal = 0;             // the signal that ended it, or 0
  bool killed_by_us = false;  // the launcher stopped it: never a cause
  bool oom = false;           // the kernel killed it for lack of memory
  std::chrono::milliseconds ran_for{0};
  // When it ended: on its node's steady clock, once reported on that of the rendezvous's host. That
  // may be off by the error; < 0: not known at all.
  int64_t at_ns = 0;
  int64_t at_error_ns = -1;
  std::string log_path;
  std::string tail;  // the last lines of its log, with their colours; at most 64 KiB travel
  // What the program says of the reason, in one line: "KeyError: 'missing_key'". "" where it has
  // said nothing. At most 4 KiB travel.
  std::string cause;
  std::string note;  // what else is known, for the message: "killed by the kernel: out of memory"
  RecordedError error;  // the cause, where the program recorded it

  bool failed() const { return code != 0 || signal != 0; }
};

// What a rank was doing when the job hung.
struct RankStack {
  int rank = -1;
  bool server = false;
  int local_rank = -1;
  int node_rank = -1;               // filled in by the rendezvous
  char state = '?';                 // as in /proc/PID/stat: R, S, D, T
  std::string channel;              // what it waits in, in the kernel; "" where unknown
  std::vector<std::string> frames;  // function names of its first thread, innermost first
  std::string missing;              // why there are none
};
// A rank has made no progress for --hang_timeout.
struct RankStall {
  int rank = -1;
  bool server = false;
  int local_rank = -1;
  std::chrono::milliseconds quiet_for{0};
  std::string log_path;
  int64_t step = -1;  // the last one that it did; -1: it does not count them
};
// How far a rank has come, by its own count (observe/rank_progress.h).
struct RankPace {
  int rank = -1;  // global
  int local_rank = -1;
  int node_rank = -1;      // filled in by the rendezvous
  int64_t steps = 0;       // that its process has done
  int64_t step = 0;        // of the whole training
  int64_t step_at_ns = 0;  // when the last step ended, on its node's clock
  int64_t waited_ns = 0;   // up to then: time in which it waited for other ranks
};

enum class VerdictKind {
  kSuccess,     // every rank of every node ended with 0
  kRankFailed,  // `exit` is the first failing rank of the whole job
  kNodeLost,    // node_rank's fleetrun vanished, fell silent or left early
  kHang,        // `exit` is the rank that hangs, as far as can be told: without code or signal
  kStopped,     // a launcher was told to stop by `signal`, and all nodes have stopped
  kNoProgress,  // it failed again and again and came no further; `exit` as of the last failure
  kResized,     // of an epoch only, never of a job: it goes on with nodes that have come
};
const char* name_of(VerdictKind kind);

// How an epoch of a restarted job ended.
struct EpochEnd {
  int epoch = 0;
  int nnodes = 0, world_size = 0;
  VerdictKind kind = VerdictKind::kSuccess;
  std::string message;  // as of a Verdict
  std::chrono::milliseconds ran_for{0};
  int64_t step = -1;  // the last one that a rank told of; -1: none did
};

// How the job ended: the same on every node.
struct Verdict {
  VerdictKind kind = VerdictKind::kSuccess;
  int epoch = 0;
  int node_rank = -1;  // of the failing rank, the lost node, the stopping launcher
  std::string node;    // its address
  std::string hostname;
  int signal = 0;       // kStopped: what the launcher got
  RankExit exit;        // kRankFailed, kHang, kNoProgress
  std::string message;  // one or more lines for the user: who, what, what to do; without the tail
  int restarts = 0;     // after failures
  std::vector<EpochEnd> history;  // all epochs of a job that was restarted; the newest 100

  bool ok() const { return kind == VerdictKind::kSuccess; }
};
// Whether `exit` says which rank it was.
bool is_of_rank(const Verdict& verdict);

// Exit codes of fleetrun that are not a rank's own and not 128 + signal. 114 is kExitPeerLost.
inline constexpr int kExitRendezvous = 112;  // nodes are missing (Refusal of kTimeout)
inline constexpr int kExitNodeLost = 113;
inline constexpr int kExitHang = 115;
inline constexpr int kExitNoProgress = 116;  // restarts did not help
inline constexpr int kExitPreflight = 117;   // a check before the start failed

// What fleetrun exits with: the rank's code, 128 + its signal, 128 + the signal the launcher got,
// or kExitNodeLost.
int exit_code_for(const Verdict& verdict);

// "10.0.0.2, host gpu07"; without the host where the address says as much or is a loopback one.
std::string node_label(const std::string& address, const std::string& hostname);
// What happened, in a line: "rank 3 of 4 exited with 7: KeyError: 'x' (log/workerlog.1)"; with
// several nodes it says on which one that file is.
std::string headline(const RankExit& exit, int world_size, int nnodes);
// "rank 3 (local rank 1) on node 1 (10.0.0.2) exited with code 7 after 12.3 s" / "was killed by
// SIGKILL". `node`: its node_label().
std::string describe(const RankExit& exit, const std::string& node);
// "SIGTERM", or "signal 77" where it has no name.
std::string signal_name(int signal);

// --- What a node hears, in the order it happens ---

// A line for the user while nodes are missing or were refused.
struct JoinProgress {
  std::string line;
};
// This node will not be part of the job: error.code() is kUsage (mismatch, duplicate), kTimeout
// (nodes are missing, or the rendezvous cannot be reached), kStale (the job already runs or is
// over). The last event.
struct Refusal {
  Error error;
};
// All ranks of the job are to be sent this signal, then stopped after the grace time; report exits,
// then finish().
struct StopOrder {
  int signal = 0;
  int node_rank = -1;  // whose launcher was asked
  std::string node;
  bool kill = false;  // at once: it was asked a second time
};
// The epoch is over, the job is not: all ranks are to be stopped; then ready(). Next come an
// Assignment of a later epoch, or the end.
struct RestartOrder {
  int epoch = 0;    // the one that is over
  Verdict cause;    // without history
  EpochEnd end;     // the same for the history
  int restart = 0;  // the how manieth; 0: it is none after a failure
  int of = 0;       // so many are allowed
};
// All ranks of the job are to be sent this signal; nothing else changes.
struct SignalOrder {
  int signal = 0;
  int node_rank = -1;  // whose launcher got it
};
// The rendezvous is lost, and another node is looked for that hosts it: all ranks are to be
// stopped. Next comes what a RestartOrder brings, or the end.
struct HostLost {
  int epoch = 0;
  std::string line;
};
// What the next host goes on from.
struct Inheritance {
  SharedWorld base;    // the last world that was heard of
  SharedWorld before;  // the one before, where it is not known whether that one counts
  std::vector<EpochEnd> history;
  int lost = 0;     // the rank in it of the host that is lost
  std::string how;  // and how that was
  std::chrono::milliseconds ran_for{0};
};
// It is this node's turn to host the rendezvous: open it at `port`, then follow().
struct TakeOver {
  int port = 0;
  Inheritance from;
};
// send_stacks() of all ranks of this node, soon.
struct StackOrder {
  int node_rank = -1;  // where a hang was noticed, or somebody asked
  bool hang = true;
};
// What request_stacks() asked for.
struct StackReport {
  std::vector<RankStack> stacks;
  std::vector<int> silent;  // nodes that have sent none
};
// Something about another node worth a log line.
struct PeerEvent {
  enum class Kind { kFinished, kLost, kPace } kind = Kind::kFinished;
  int node_rank = -1;
  std::string node;
  std::string line;
};
// JoinProgress* (Refusal | Assignment (PeerEvent | StopOrder | SignalOrder | StackOrder |
// StackReport)* (RestartOrder JoinProgress* Assignment ...)* Verdict). A Verdict may also come
// instead of an Assignment where the job is stopped while it is forming, or ends while this node is
// a spare.
using RendezvousEvent =
    std::variant<JoinProgress, Refusal, Assignment, PeerEvent, StopOrder, SignalOrder, StackOrder,
                 StackReport, RestartOrder, HostLost, TakeOver, Verdict>;

}  // namespace fleet
