// Everything that should be the same on every node of a job.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fleet {

struct FingerprintInputs {
  std::vector<std::string> command;  // a rank's, with argv[0] resolved; empty: no program is known
  bool trains = false;               // whether the command is fleet-worker
  bool on_gpus = false;
  std::vector<std::string> environment;  // "NAME=value"
};

// Maps names that a user knows to identities: binaries, the program's file, libraries, and the
// environment variables that change what the ranks do. See JobSpec::fingerprint. Opens a few files,
// runs nothing.
std::map<std::string, std::string> fingerprint(const FingerprintInputs& of);

// Whether a variable changes what ranks compute or how they communicate: NCCL_*, GLOO_*, FLAGS_*,
// OMP_* and similar. Such a variable must be the same on all nodes; when fleetrun starts the other
// nodes, it passes the variable on.
bool must_match(const std::string& variable);
// Whether a variable names devices or interfaces of one node, and so may differ between nodes.
bool is_node_specific(const std::string& variable);

// The program's files: its script or job file, and the binary unless it is a shell.
std::vector<std::string> program_files(const std::vector<std::string>& command);

}  // namespace fleet
