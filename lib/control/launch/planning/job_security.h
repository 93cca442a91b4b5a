// Protection of a job, and the credentials that its ranks get.
#pragma once

#include <string>

#include "base/file.h"
#include "launch/planning/topology.h"
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

}  // namespace fleet
