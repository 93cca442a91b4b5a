// Everything that should be the same on every node of a job.
#pragma once

#include <map>
#include <string>
#include <string_view>
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

// "build 91bc7e0a1122" for an ELF file with a build id, which the linker derives from the content.
// Otherwise "hash 91bc7e0a11223344 (4711 bytes)" of the whole file, or of the first and last 512
// KiB above 1 MiB. "" if the file cannot be read. Reads little, so that a start stays fast.
std::string file_identity(const std::string& path);
// "hash 91bc7e0a11223344 (4711 bytes)"
std::string text_identity(std::string_view text);

// The folders that the dynamic loader searches, as far as files show: `search` (LD_LIBRARY_PATH),
// /etc/ld.so.conf, and the usual ones. `root` is the prefix of /etc.
std::vector<std::string> library_folders(const std::string& search, const std::string& root = {});

// The real path of "libnccl.so.2" in the first of these folders that has it; "" if none has.
std::string find_library(const std::string& name, const std::vector<std::string>& folders);

// "2.28.9" for a path that ends with .so.2.28.9; "" if the name has fewer parts than a.b.
std::string version_in_name(const std::string& path);

}  // namespace fleet
