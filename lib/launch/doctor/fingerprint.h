// What should be alike on every node of a job.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fleet {

struct FingerprintOf {
  std::vector<std::string> command;  // a rank's, argv[0] looked up; empty: no program is known
  bool trains = false;               // it is fleet-worker
  bool on_gpus = false;
  std::vector<std::string> environment;  // "NAME=value"
};

// By a name that a user knows: binaries, the program's file, libraries, and the environment that
// changes what the ranks do. JobSpec::alike. Opens a few files, runs nothing.
std::map<std::string, std::string> fingerprint(const FingerprintOf& of);

// Whether a variable changes what ranks compute or how they communicate, so that it must be the
// same on all nodes, and is to be passed on where fleetrun starts the other nodes itself: NCCL_*,
// GLOO_*, FLAGS_*, OMP_* and their like.
bool must_be_alike(const std::string& variable);
// Of those that say which devices and interfaces a node uses: they may differ.
bool is_of_one_node(const std::string& variable);

// The files that hold the program: its script or job file, and the binary unless that is a shell.
std::vector<std::string> program_files(const std::vector<std::string>& command);

}  // namespace fleet
