// The properties of a node that matter to a job: gathered once (gather.cc), judged by pure checks.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace fleet {

struct NetworkInterface {
  std::string name;
  bool up = false;  // up and with a carrier
  bool loopback = false;
  int mtu = 0;                         // bytes
  std::vector<std::string> addresses;  // numeric, without IPv6 link-local ones
};

struct RdmaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string state;       // "ACTIVE", "DOWN", "INIT", ...
  std::string link_layer;  // "InfiniBand", "Ethernet"
  std::string rate;        // "400 Gb/sec (4X NDR)"
};

struct GpuState {
  std::string name;
  long long memory_used = 0, memory_total = 0;  // bytes
  long long uncorrected_errors = 0;             // memory errors since the driver was loaded
};

struct GpuFacts {
  int devices = 0;              // device files that can be opened
  std::vector<int> unreadable;  // device files that cannot be opened
  bool driver_module = false;   // whether the kernel module is loaded
  std::string problem;          // why the driver did not answer; "" if it did, or is absent
  std::string driver, cuda;     // "580.65.06", "13.0": the newest CUDA it runs; "" unknown
  std::vector<GpuState> gpus;
  std::string nccl, cudnn;   // "2.28.9"; "" if not found
  bool peer_memory = false;  // nvidia_peermem: RDMA straight into GPU memory
};

struct MachineFacts {
  int cores = 0;                                  // that this process may run on
  double cpu_quota = 0;                           // the cgroup's, in cores; 0: no limit
  long long memory = 0;                           // bytes
  long long memory_limit = 0;                     // the cgroup's, bytes; 0: no limit
  long long open_files = 0, open_files_hard = 0;  // RLIMIT_NOFILE; -1: unlimited
  long long locked_memory = 0;                    // RLIMIT_MEMLOCK, bytes; -1: unlimited
  long long shm_size = 0, shm_free = 0;           // /dev/shm, bytes; size 0: does not exist
  bool shm_writable = false;
  std::string log_dir;            // the log folder, or its nearest existing parent
  long long log_free = 0;         // bytes
  long long log_files_free = -1;  // inodes; -1: the file system does not count them
};

struct NodeFacts {
  std::string address;  // as in the job
  std::string numeric;  // that address in numeric form
  std::string hostname;
  std::string hostname_address;  // address of the host's own name; "" if it does not resolve
  int nnodes = 1;
  int ranks = 1;  // ranks on this node
  std::vector<NetworkInterface> interfaces;
  std::vector<RdmaPort> rdma;
  std::map<std::string, std::string> environment;  // communication settings that ranks inherit
  std::map<std::string, std::string> nccl_conf;    // the settings of NCCL's configuration file
  GpuFacts gpu;
  MachineFacts machine;

  // The interface with this node's address; nullptr if none.
  const NetworkInterface* primary_interface() const;
  const NetworkInterface* interface(const std::string& name) const;
  // An NCCL setting from the environment, else from the configuration file; "" if neither has it.
  std::string setting(const std::string& name) const;
};

enum class Severity { kOk, kWarn, kFail };

struct Finding {
  std::string check;  // "reachability"
  Severity severity = Severity::kOk;
  std::string what;  // in one clause
  std::string next;  // advice; empty if none is needed
  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

inline Finding ok(std::string check, std::string what) {
  return {std::move(check), Severity::kOk, std::move(what), {}};
}
inline Finding warn(std::string check, std::string what, std::string next) {
  return {std::move(check), Severity::kWarn, std::move(what), std::move(next)};
}
inline Finding fail(std::string check, std::string what, std::string next) {
  return {std::move(check), Severity::kFail, std::move(what), std::move(next)};
}

// Everything about this node except its place in the job. Queries NVIDIA's driver and NCCL in a
// child process with a timeout of 10 s. Call it before threads exist.
//   environment  "NAME=value" each; keeps those of must_match() or is_node_specific()
NodeFacts gather_facts(const std::vector<std::string>& environment, const std::string& log_dir);

// The parts that read folders; `root` is the prefix of /sys, for tests.
std::vector<RdmaPort> read_rdma(const std::string& root = {});
// The settings of NCCL's configuration file: "NAME=value" lines.
std::map<std::string, std::string> read_nccl_conf(const std::string& path);
// Only the facts that the settings checks need; fast enough for every start.
NodeFacts gather_settings(const std::vector<std::string>& environment);

struct GpuLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string nccl;   // path; "" if not found
  std::string cudnn;  // path; "" if not found
};

// Queries them in a child process, so that a driver that crashes or hangs (a GPU that fell off its
// bus) becomes a finding. Gives up after `timeout`. Call it before threads exist.
GpuFacts probe_gpus(std::chrono::milliseconds timeout = std::chrono::seconds(10));
GpuFacts probe_gpus(const GpuLibraries& libraries, std::chrono::milliseconds timeout);

}  // namespace fleet
