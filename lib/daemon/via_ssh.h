// --via=ssh: a whole job, started from anywhere over OpenSSH. On each node ssh starts a fleetrun
// that talks as fleetd would, over the one connection: the job's arguments, environment and secret,
// its output and signals. The node's side ends with the connection.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launch/dry_run/via_plan.h"
#include "launch/options.h"

namespace fleet {

// Starts the job, shows what it shows, passes signals on, and ends with its exit code. Throws what
// the user got wrong.
int start_via_ssh(LaunchRequest request);
// What that would run where.
ViaPlan plan_via_ssh(const LaunchRequest& request);

// The command for a node. `options` come before ours, so that they win. `programs`: tried in this
// order, paths or names.
std::vector<std::string> ssh_command(const std::string& host,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& programs);

// Why a connection ended, from what ssh said. `connected`: the node had answered.
Error explain_ssh(const std::string& host, const std::string& said, bool connected);

}  // namespace fleet
