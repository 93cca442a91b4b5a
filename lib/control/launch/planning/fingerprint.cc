#include "launch/planning/fingerprint.h"

#include <gnu/libc-version.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/planning/file_identity.h"
#include "launch/planning/libraries.h"
#include "launch/planning/program.h"
#include "launch/planning/secret_names.h"

namespace fleet {
namespace {

bool is_file(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Shortens long values to a prefix and a hash, because every node sends them.
std::string short_text(const std::string& value) {
  constexpr size_t kLongest = 200, kShown = 40;
  if (value.size() <= kLongest) return value;
  return value.substr(0, kShown) + "... " + text_identity(value);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void add_file(const std::string& path, std::map<std::string, std::string>* all) {
  const std::string identity = file_identity(path);
  if (!identity.empty()) (*all)[name_in(path)] = identity;
}

void add_libraries(bool trains, std::map<std::string, std::string>* all) {
  const std::vector<std::string> folders = library_folders(env_or("LD_LIBRARY_PATH", ""));
  for (const auto& [name, file] : {std::pair{"CUDA driver", "libcuda.so.1"},
                                   {"NCCL", "libnccl.so.2"},
                                   {"cuDNN", "libcudnn.so.9"}}) {
    const std::string path = find_library(file, folders);
    if (path.empty()) continue;
    const std::string version = version_in_name(path);
    (*all)[name] = version.empty() ? file_identity(path) : version;
  }
  if (!trains) return;
  const std::string beside = std::filesystem::path(default_worker_path()).parent_path().string();
  for (const char* module : {"libfleet_cuda.so", "libfleet_nccl.so"}) {
    const std::string path = find_library(module, {beside, beside + "/../lib/fleetrun"});
    if (!path.empty()) add_file(path, all);
  }
}

}  // namespace

bool is_node_specific(const std::string& variable) {
  return variable.ends_with("_SOCKET_IFNAME") || variable.starts_with("FLAGS_selected_") ||
         variable == "NCCL_IB_HCA" || variable == "NCCL_HOSTID" || variable == "NCCL_DEBUG_FILE" ||
         variable == "NCCL_OOB_NET_IFNAME" || variable == "NCCL_COMM_ID" ||
         variable == "OMP_PLACES" || variable == "FLAGS_START_PORT";
}

bool must_match(const std::string& variable) {
  for (const char* family : {"NCCL_", "GLOO_", "FLAGS_", "OMP_", "KMP_", "CUBLAS_", "CUDNN_",
                             "TORCH_NCCL_", "UCX_", "DNNL_", "ONEDNN_"}) {
    if (variable.starts_with(family)) return !is_node_specific(variable);
  }
  for (const char* name : {"CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS",
                           "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE"}) {
    if (variable == name) return true;
  }
  return false;
}

std::vector<std::string> program_files(const std::vector<std::string>& command) {
  std::vector<std::string> files;
  if (command.empty()) return files;
  const std::string binary = name_in(command[0]);
  const bool shell = binary == "sh" || binary == "bash" || binary == "dash" || binary == "env";
  // Skip a system shell: its version does not matter to the job.
  if (!shell) files.push_back(command[0]);
  const bool interpreter = shell || binary.starts_with("python") || binary == "perl" ||
                           binary == "fleet-worker" || binary == "julia" || binary == "mpiexec";
  if (!interpreter) return files;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-c" || command[i] == "-m") break;  // the next word is not a file
    if (command[i].starts_with('-')) continue;
    if (is_file(command[i])) files.push_back(command[i]);
    break;
  }
  return files;
}

std::map<std::string, std::string> fingerprint(const FingerprintInputs& of) {
  std::map<std::string, std::string> all;
  add_file("/proc/self/exe", &all);
  if (const auto self = all.extract("exe")) all["fleetrun"] = self.mapped();
  for (const std::string& path : program_files(of.command)) add_file(path, &all);
  all["glibc"] = ::gnu_get_libc_version();
  if (of.on_gpus) add_libraries(of.trains, &all);
  for (const std::string& entry : of.environment) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals != std::string::npos && must_match(name) && !is_secret(name))
      all[name] = short_text(entry.substr(equals + 1));
  }
  return all;
}

}  // namespace fleet
