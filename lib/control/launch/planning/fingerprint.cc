#include "launch/planning/fingerprint.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "launch/planning/elf_file.h"
#include "launch/planning/program.h"
#include "launch/planning/secret_names.h"

namespace fleet {
namespace {

constexpr uint64_t kWhole = 1 << 20;  // files up to this size are read completely

std::string read_at(int file, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// Six bytes of the build id suffice to distinguish builds.
std::string shown_build_id(const std::string& path) {
  constexpr size_t kShown = 6;
  const auto elf = ElfFile::open(path);
  return elf ? hex(std::string_view(elf->build_id()).substr(0, kShown)) : "";
}

std::string identity_text(uint64_t value, uint64_t size) {
  char text[64];
  std::snprintf(text, sizeof text, "hash %016llx (%llu bytes)",
                static_cast<unsigned long long>(value),  // NOLINT(runtime/int): printf's
                static_cast<unsigned long long>(size));  // NOLINT(runtime/int)
  return text;
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
  const std::string folder = std::filesystem::path(default_worker_path()).parent_path().string();
  for (const char* module : {"libfleet_cuda.so", "libfleet_nccl.so"}) {
    const std::string path = find_library(module, {folder, folder + "/../lib/fleetrun"});
    if (!path.empty()) add_file(path, all);
  }
}

void add_configured(const std::string& file, std::vector<std::string>* folders) {
  try {
    for (const std::string& line : split(read_file(file), '\n')) {
      if (line.starts_with('/')) folders->push_back(line);
    }
  } catch (const Error&) {  // none
  }
}

}  // namespace

std::string text_identity(std::string_view text) {
  return identity_text(hash_text(text), text.size());
}

std::string file_identity(const std::string& path) {
  if (const std::string id = shown_build_id(path); !id.empty()) return "build " + id;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto size = static_cast<uint64_t>(status.st_size);
  uint64_t value = hash_text(read_at(file.get(), 0, size <= kWhole ? size : kWhole / 2));
  if (size > kWhole) value = hash_text(read_at(file.get(), size - kWhole / 2, kWhole / 2), value);
  return identity_text(value, size);
}

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

std::vector<std::string> library_folders(const std::string& search, const std::string& root) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(search, ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  add_configured(root + "/etc/ld.so.conf", &folders);
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/etc/ld.so.conf.d", none)) {
    if (entry.path().extension() == ".conf") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add_configured(file, &folders);
#if defined(__aarch64__)
  constexpr const char* kDebianFolders[] = {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
#else
  constexpr const char* kDebianFolders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"};
#endif
  for (const char* folder : kDebianFolders) folders.emplace_back(folder);
  for (const char* usual : {"/usr/lib64", "/usr/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(usual);
  }
  return folders;
}

std::string find_library(const std::string& name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::error_code error;
    const auto path = std::filesystem::canonical(std::filesystem::path(folder) / name, error);
    if (!error) return path.string();
  }
  return {};
}

std::string version_in_name(const std::string& path) {
  const size_t at = path.rfind(".so.");
  if (at == std::string::npos) return {};
  const std::string version = path.substr(at + 4);
  const bool numbers = std::all_of(version.begin(), version.end(),
                                   [](unsigned char c) { return std::isdigit(c) || c == '.'; });
  return numbers && version.find('.') != std::string::npos ? version : std::string();
}

}  // namespace fleet
