// The meaning of the options of a start: typed, and resolved once. Only the parser, and code that
// prints, compares or passes on options, reads them by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/node_list.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

// A server or trainer that the user has listed.
struct RoleEntry {
  std::string address;
  int port = 0;  // 0: not given
  int rank = 0;  // index in its list
};

// As the user lists them: "10.0.0.1:6070,10.0.0.2:6070".
std::string list_text(const std::vector<RoleEntry>& entries);

// Parameter servers: the server and trainer processes.
struct Roles {
  bool wanted = false;  // false: collective training
  // Either listed by --servers and --workers, or counted per node by --server_num and --worker_num.
  std::vector<RoleEntry> servers, trainers;
  int server_num = 0, trainer_num = 0;
  wire::RankCommand::Replacement replacement = wire::RankCommand::NEVER;  // for trainers
  int with_gloo = 1;                                                      // PADDLE_WITH_GLOO
  int gloo_port = 0;  // 0: chosen like an endpoint port

  bool listed() const { return !servers.empty(); }
  // The nodes of the lists in order of appearance, servers first.
  std::vector<ListedNode> nodes() const;
};

// --run_mode selects the mode, or one of its options implies it. Throws kUsage if options
// contradict each other.
Roles read_roles(const Settings& settings);

// This node's processes, servers first.
struct LocalRoles {
  std::vector<RoleEntry> entries;
  int servers = 0;
};
// `address`: this node's, as listed.
LocalRoles local_roles(const Roles& roles, const std::string& address);

struct NodeCount {
  int min = 1, max = 1;

  bool is_range() const { return min != max; }
  std::string text() const;  // "4" or "2:4"
};
// Parses --nnodes, "4" or "2:4"; nullopt if it is not given. Throws kUsage for anything else.
std::optional<NodeCount> read_node_count(const Settings& settings);

// The one of max_restart and elastic_level that is ignored if they contradict each other; "" if
// they agree. A flag wins over the environment. Within the environment level -1 wins, as in Paddle.
// Throws kUsage for two contradicting flags.
std::string overruled_by_elasticity(const Settings& settings);

// The default of --max_restart is 3 if elasticity is requested (a range of nodes, --elastic_level
// 1), else 0. Trainers of parameter servers may be replaced as often, or 3 times if nothing says
// how often the job may restart. Throws kUsage if the options contradict each other.
RestartPolicy read_restart_policy(const Settings& settings);

// --master.
struct MasterAddress {
  std::string address;
  int port = 0;  // 0: not given
};

// The options that say which nodes take part and where they meet, resolved.
struct NodesConfig {
  // Those of --ips in rank order, or those of --servers and --workers; empty: nodes are counted.
  Sourced<std::vector<ListedNode>> listed;
  Sourced<std::optional<NodeCount>> count;  // --nnodes
  Sourced<std::optional<MasterAddress>> master;
  Sourced<std::string> host;  // this node's address; "": found out
  std::string reached_at;     // --local_addr of another host: through it, ranks reach this node
  Sourced<std::optional<int>> rank;             // this node's; nullopt: found out, or by arrival
  Sourced<std::optional<int>> rendezvous_port;  // --rdzv_port, or the port of --master; 0: any
  Sourced<std::optional<int>> start_port;       // 0: any
  int master_port = 0;                          // MASTER_PORT; 0: any

  bool several_counted() const {
    return listed.value.empty() && count.value && count.value->max > 1;
  }
};

// Throws kUsage for an invalid value, and for options that contradict each other.
NodesConfig read_nodes_config(const Settings& settings, const Roles& roles);

// Streams of each local rank: bits of wire::RankCommand::Stream.
struct RankStreams {
  int others = 0;
  std::map<int, int> by_rank;
  bool any() const { return others != 0 || !by_rank.empty(); }
  int of(int local_rank) const {
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? others : found->second;
  }
};

struct ShownRanks {
  bool chosen = false;  // false: local rank 0 of each node, as in Paddle
  bool all = false;
  std::set<int> ranks, local_ranks;  // global ranks, and local ranks of each node
  RankStreams tee, redirects;        // streams by local rank
  RankStreams labels;                // streams whose lines have their rank as prefix

  bool shows(int rank, int local_rank) const {
    return chosen ? all || ranks.contains(rank) || local_ranks.contains(local_rank)
                  : local_rank == 0;
  }
  // The shown streams of a rank. As in torchrun: not redirected, or redirected and teed.
  int streams(int rank, int local_rank) const {
    const int wanted = tee.of(local_rank) | (3 & ~redirects.of(local_rank));
    return shows(rank, local_rank) ? wanted : 0;
  }
};

// Parses --ranks and --local_ranks_filter ("all", or numbers and ranges such as "0,3-5"), and --tee
// and --redirects ("3" or "0:1,2:3"). With only --tee or --redirects, all ranks are shown. Throws
// kUsage for an invalid value.
ShownRanks read_shown_ranks(const Settings& settings);

enum class Switch { kAuto, kOn, kOff };  // kAuto: on a terminal
enum class TableStyle { kAuto, kPaddle, kNarrow, kNone };
// The lines printed at the start (launch/planning/start_style.h).
enum class StartStyle {
  kTable,   // the configuration and the environment table, as Paddle does
  kLine,    // one line, and one after a success
  kSilent,  // nothing, as torchrun does
};

struct LogConfig {
  Sourced<std::string> folder;  // --log_dir: the log folder, or with --compat=torchrun its parent
  bool split = false;           // standard error in a file of its own
  bool overwrite = false;
  Sourced<int64_t> max_size, total_size;  // bytes; 0: unlimited
  bool stamp_console = false, stamp_files = false;
  Switch collapse = Switch::kAuto;
  Switch drop_if_slow = Switch::kAuto;  // drop lines that a slow console does not take
  ShownRanks shown;
  std::optional<std::string> label;  // --log_line_prefix_template
  // --duplicate_stdout_filters, --duplicate_stderr_filters: lines with these texts are copied.
  std::vector<std::string> output_filters, error_filters;
  std::string level;  // level of fleetrun's own lines and of the ranks: DEBUG, INFO, WARNING, ERROR
  bool quiet = false;
  StartStyle start = StartStyle::kLine;  // set by parse_arguments(), which knows the program
  TableStyle table = TableStyle::kAuto;

  // The level of fleetrun's own lines.
  std::string own_level() const { return quiet && level != "ERROR" ? "WARNING" : level; }
};

// Throws kUsage for an invalid value.
LogConfig read_log_config(const Settings& settings);

inline constexpr int64_t kMinLogSize = 64 << 10;  // bytes

// Throws kUsage if --log_total_size is too small for the logs of `local_world_size` ranks.
void check_log_settings(const LogConfig& config, int local_world_size);

// `spawn`: has the ranks of this node.
wire::LogSettings log_settings(const LogConfig& config, const Assignment& assignment,
                               const wire::SpawnRanks& spawn);

// The numeric address and the port of an option "ADDRESS:PORT", or "PORT" alone for 127.0.0.1.
// kUsage if it is none, or if the port is below `least_port`.
std::string read_listen_address(const Settings& settings, const std::string& key, int usual_port,
                                int least_port, int* port);

// --metrics: where this node serves the state of its ranks to Prometheus.
struct MetricsConfig {
  std::string address;  // numeric; "": nowhere
  int port = 0;
  std::string token_file;  // "": no token is asked for

  bool wanted() const { return !address.empty(); }
};

// kUsage for an address that is not one, and for one beyond loopback without a token.
MetricsConfig read_metrics_config(const Settings& settings);

struct SecurityConfig {
  bool insecure = false;
  Sourced<std::string> secret_file;  // "": FLEET_JOB_SECRET, then the user's own file
};

// --via and its options.
struct ViaConfig {
  std::string name;                            // "": none
  std::vector<std::string> options;            // options of ssh or srun
  std::optional<std::string> remote_fleetrun;  // path on the nodes
  int fleetd_port = 0;
  std::string fleetd_secret_file;     // "": FLEETD_SECRET, then the user's own file
  bool detach = false;                // exit once the job runs
  bool share_gpus = false;            // also use GPUs that other jobs occupy
  std::optional<std::string> folder;  // working directory on the nodes
  std::optional<std::string> user;    // user of the nodes' fleetds
};

// --numa_binding, as in torch.numa.binding.
enum class NumaBinding {
  kNode,         // the cores of the GPU's NUMA node
  kSocket,       // the cores of all NUMA nodes of that socket
  kExclusive,    // the GPU's share of the node's physical cores
  kCoreComplex,  // cores that share a last-level cache, a different one for each GPU of the node
};

struct LaunchConfig {
  Sourced<std::string> job_id;
  NodesConfig nodes;
  std::chrono::milliseconds rendezvous_timeout{0}, heartbeat_timeout{0};
  Roles roles;

  Sourced<std::vector<std::string>> gpus;        // numbers as given; empty: all visible ones
  Sourced<std::optional<int>> local_world_size;  // --nproc_per_node; nullopt: by GPUs
  std::optional<NumaBinding> numa_binding;
  bool virtual_local_rank = false;
  std::string role;  // torchrun's name of this node's ranks

  bool as_torchrun = false;  // torchrun's defaults, logs and console
  ProgramKind program_kind = ProgramKind::kByName;
  std::vector<std::string> dialects;
  bool dialects_given = false;
  std::vector<std::string> exported;  // --export: NAME=VALUE, NAME or PREFIX*

  std::chrono::milliseconds grace{0};
  wire::GuardianSettings guardian;  // sent to it as they are
  RestartPolicy restarts;
  std::vector<int> stop_signals;
  std::string end_command;  // --on_end; "": none

  LogConfig logs;
  MetricsConfig metrics;
  SecurityConfig security;
  ViaConfig via;

  bool allow_skew = false, preflight = false;
  Sourced<std::optional<int>> debug_rank;
  bool control_pipe = false;  // standard input carries signals
  bool part = false;          // another fleetrun shows the job
};

// Throws kUsage for values that are invalid on every machine, and for options that contradict each
// other.
LaunchConfig read_launch_config(const Settings& settings);

// The signals that stop the job. Throws kUsage for an unknown name, or a signal that cannot be
// handled.
std::vector<int> read_stop_signals(const Settings& settings);
// The signals that a client of a job forwards to it: all that stop it, SIGUSR1 and SIGUSR2. Without
// those that this process was started to ignore: nohup, or the background of a script.
std::vector<int> forwarded_signals();
// "SIGTERM,SIGINT"
std::string signal_names(const std::vector<int>& signals);

}  // namespace fleet
