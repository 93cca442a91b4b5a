// The plan that a command line yields on this node, before the other nodes join.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "launch/planning/arguments.h"
#include "launch/planning/devices.h"
#include "launch/planning/topology.h"
#include "node/reserved_ports.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"
#include "transport/security.h"

namespace fleet {

// The security of a job. --insecure: none. Single node: its Unix socket, which only this user's
// processes can reach, without a secret. Several nodes: their shared secret. `make`: create a
// missing secret. Throws kUsage.
Security resolve_job_security(const SecurityConfig& config, const Topology& topology, bool make);

// The ranks read their Security from this memory of the launcher, which only this user can reach.
// It is never on a disk or in the ranks' environment, and does not survive a kill -9.
class CredentialsFile {
 public:
  CredentialsFile() = default;  // no credentials: open job
  explicit CredentialsFile(const Security& security);
  // "/proc/PID/fd/N", valid as long as this object; "" for an open job.
  const std::string& path() const { return path_; }

 private:
  UniqueFd memory_;
  std::string path_;
};

struct LaunchPlan {
  LaunchRequest request;
  Topology topology;
  LocalRoles local_roles;  // with parameter servers
  LocalRanks ranks;        // this node's, servers included
  std::vector<std::string> command;
  bool trains = false;  // the command is fleet-worker
  std::string log_dir;
  Security security;
  std::string credentials;          // CredentialsFile::path(), for the ranks' environment
  bool doctor = false;              // the nodes join for fleetrun doctor, not for a job
  std::vector<ReservedPort> ports;  // by rank
  std::unique_ptr<ReservedPort> master_port;
  std::unique_ptr<ReservedPort> failover_port;  // where this node hosts it if the host is lost
  std::unique_ptr<ReservedPort> service_port;   // on loopback, if a dialect needs it

  const LaunchConfig& config() const { return request.config; }
  // With parameter servers, which come first, the trainers may have GPUs.
  bool on_gpus() const { return !ranks.devices.front().empty() || !ranks.devices.back().empty(); }
};

// Checks everything that can be checked on this node, and holds its ports. Call it before threads
// exist. Throws Error for user errors and for requests that the machine rejects.
LaunchPlan make_launch_plan(LaunchRequest request);
// The plan of fleetrun doctor: the program is optional, and it holds only the port of the first
// rank, or any free port if a job has that one.
LaunchPlan make_doctor_plan(LaunchRequest request);

// Holds the port at which this node hosts the rendezvous if the host is lost.
void reserve_failover_port(LaunchPlan* plan);

// The folder, or its nearest existing parent.
std::string nearest_folder(const std::string& path);

}  // namespace fleet
