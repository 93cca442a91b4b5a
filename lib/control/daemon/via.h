// --via=fleetd and --via=ssh: start a whole job from any host.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/via_plan.h"
#include "transport/security.h"

namespace fleet {

// --- through the fleetds of its nodes ---

// Starts the job, shows its output, forwards signals, and returns its exit code. With --detach,
// returns 0 once the job runs. Throws user errors.
int start_via_fleetd(const LaunchRequest& request);
// The plan of start_via_fleetd(), for --dry_run.
ViaPlan plan_via_fleetd(const LaunchRequest& request);

// Shows a running job on these fleetds until it ends, and returns its exit code. Forwards signals
// to the job, which does not end with this process. `restarts`: the job may continue without a lost
// node.
int attach_via_fleetd(const std::string& job_id, const std::vector<std::string>& addresses,
                      bool restarts, const Security& security);

// --- over OpenSSH ---
// On each node ssh runs a fleetrun that acts like fleetd over that one connection, which carries
// the job's arguments, environment, secret, output and signals. The node's side ends with the
// connection.

// Starts the job, shows its output, forwards signals, and returns its exit code. Throws user
// errors.
int start_via_ssh(const LaunchRequest& request);
// The plan of start_via_ssh(), for --dry_run.
ViaPlan plan_via_ssh(const LaunchRequest& request);

// The command for a node. `options` come before ours, so that they take precedence. `programs`:
// paths or names to try in this order.
std::vector<std::string> ssh_command(const std::string& host,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& programs);

// Why a connection ended, from the messages of ssh. `connected`: the node had answered. `printed`:
// what the node's shell printed instead of starting fleetrun.
Error explain_ssh(const std::string& host, const std::string& error_output, bool connected,
                  const std::string& printed = {});

}  // namespace fleet
