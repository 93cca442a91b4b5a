// The meaning of the options of a start: typed, and resolved once. Only the parser, and code that
// prints, compares or passes on options, reads them by name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/planning/log_config.h"
#include "launch/planning/metrics_config.h"
#include "launch/planning/nodes_config.h"
#include "launch/planning/program.h"
#include "launch/planning/roles.h"
#include "launch/planning/sourced.h"
#include "launch/planning/torchrun/numa_binding.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

struct SecurityConfig {
  bool insecure = false;
  Sourced<std::string> secret_file;  // "": FLEET_JOB_SECRET, then the user's own file
};

// --via and its options.
struct ViaConfig {
  std::string name;                            // "": none
  std::vector<std::string> options;            // of ssh or srun
  std::optional<std::string> remote_fleetrun;  // path on the nodes
  int fleetd_port = 0;
  std::string fleetd_secret_file;     // "": FLEETD_SECRET, then the user's own file
  bool detach = false;                // exit once the job runs
  bool share_gpus = false;            // also use GPUs that other jobs occupy
  std::optional<std::string> folder;  // working directory on the nodes
  std::optional<std::string> user;    // of the nodes' fleetds
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

}  // namespace fleet
