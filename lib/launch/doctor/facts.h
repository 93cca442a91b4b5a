// What one node is like, as far as a job cares: gathered once (gather.h), judged by pure checks.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fleet {

struct NetworkInterface {
  std::string name;
  bool up = false;  // and with a carrier
  bool loopback = false;
  int mtu = 0;                         // bytes
  std::vector<std::string> addresses;  // numeric, without IPv6's link-local ones
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
  long long uncorrected_errors = 0;             // of its memory, since the driver was loaded
};

struct GpuFacts {
  int devices = 0;              // that may be opened
  std::vector<int> unreadable;  // that are there but may not
  bool driver_module = false;   // the kernel has it
  std::string problem;          // why the driver did not answer; "" where it did, or is not there
  std::string driver, cuda;     // "580.65.06", "13.0": the newest CUDA it runs; "" unknown
  std::vector<GpuState> gpus;
  std::string nccl, cudnn;   // "2.28.9"; "" where not found
  bool peer_memory = false;  // nvidia_peermem: RDMA straight into GPU memory
};

struct MachineFacts {
  int cores = 0;                                  // this process may run on
  double cpu_quota = 0;                           // of the cgroup, in cores; 0: none
  long long memory = 0;                           // bytes
  long long memory_limit = 0;                     // of the cgroup, bytes; 0: none
  long long open_files = 0, open_files_hard = 0;  // RLIMIT_NOFILE; -1: unlimited
  long long locked_memory = 0;                    // RLIMIT_MEMLOCK, bytes; -1: unlimited
  long long shm_size = 0, shm_free = 0;           // /dev/shm, bytes; size 0: not there
  bool shm_writable = false;
  std::string log_dir;            // where it is, or would be made
  long long log_free = 0;         // bytes
  long long log_files_free = -1;  // inodes; -1: its file system does not count them
};

struct NodeFacts {
  std::string address;  // as the job knows it
  std::string numeric;  // that address in numeric form
  std::string hostname;
  std::string hostname_address;  // what the host's own name resolves to here; "" nothing
  int nnodes = 1;
  int ranks = 1;  // of this node
  std::vector<NetworkInterface> interfaces;
  std::vector<RdmaPort> rdma;
  std::map<std::string, std::string> environment;  // what is passed on to the ranks of it
  std::map<std::string, std::string> nccl_conf;    // the settings of NCCL's configuration file
  GpuFacts gpu;
  MachineFacts machine;

  // The interface that has this node's address; nullptr where none has.
  const NetworkInterface* facing() const;
  const NetworkInterface* interface(const std::string& name) const;
  // A setting of NCCL: the environment's, else the configuration file's; "" where neither has it.
  std::string setting(const std::string& name) const;
};

}  // namespace fleet
