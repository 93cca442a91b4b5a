// How a job is guarded, and what of it goes to the ranks.
#pragma once

#include <string>

#include "base/command_line.h"
#include "base/config.h"
#include "base/file.h"
#include "launch/topology.h"
#include "rendezvous/security.h"

namespace fleet {

// --insecure: not at all. On one node: by its Unix socket, which only this user's processes reach,
// without a secret. On several: by the secret that they share. `make`: make one where there is
// none. kUsage.
Security guard_job(const Settings& settings, const Topology& topology, bool make);

// What the ranks read their Security from: memory of this process that this user alone can reach.
// Nothing of it is on a disk, in the ranks' environment, or left after a kill -9.
class CredentialsFile {
 public:
  CredentialsFile() = default;  // none: open
  explicit CredentialsFile(const Security& security);
  // "/proc/PID/fd/N", valid as long as this object; "" where there is nothing to know.
  const std::string& path() const { return path_; }

 private:
  UniqueFd memory_;
  std::string path_;
};

// fleetrun secret [--new | --show]: makes the file of default_secret_path(), or prints.
Command secret_command();

}  // namespace fleet
