#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/planning/devices.h"
#include "launch/planning/fingerprint.h"
#include "launch/tools/doctor/facts.h"

namespace fleet {
namespace {

// Copied from nvml.h, because the launcher is built without it; the ABI is stable.
struct NvmlMemory {
  unsigned long long total, free, used;  // NOLINT(runtime/int): NVML's type
};

class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}
  explicit operator bool() const { return handle_ != nullptr; }
  // Calls a function that returns 0 on success; returns whether it exists and succeeded.
  template <typename... Args>
  bool call(const char* name, Args... args) const {
    if (!handle_) return false;
    using Function = int (*)(Args...);
    const auto function = reinterpret_cast<Function>(::dlsym(handle_, name));
    return function && function(args...) == 0;
  }

 private:
  void* handle_;
};

// Prints one line of words. Names may contain blanks and come last.
void write_field(const char* what, const std::string& value) {
  std::printf("%s %s\n", what, value.c_str());
}

void write_gpu(const Library& nvml, unsigned index) {
  void* gpu = nullptr;
  char name[96] = "unknown";
  if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &gpu)) {
    write_field("problem", "GPU " + std::to_string(index) + " does not answer the driver");
    return;
  }
  nvml.call("nvmlDeviceGetName", gpu, static_cast<char*>(name), static_cast<unsigned>(sizeof name));
  NvmlMemory memory = {};
  nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory);
  unsigned long long errors = 0;  // NOLINT(runtime/int)
  constexpr int kUncorrected = 1, kVolatile = 0;
  nvml.call("nvmlDeviceGetTotalEccErrors", gpu, kUncorrected, kVolatile, &errors);
  std::printf("gpu %llu %llu %llu %s\n", memory.used, memory.total, errors, name);
}

// Runs in the child process.
void tell(const GpuLibraries& libraries) {
  const Library nvml(libraries.nvml);
  if (nvml && !nvml.call("nvmlInit_v2")) {
    write_field("problem", "the NVIDIA driver does not answer (nvmlInit failed)");
  } else if (nvml) {
    char driver[96] = "?";
    int cuda = 0;
    unsigned count = 0;
    nvml.call("nvmlSystemGetDriverVersion", static_cast<char*>(driver),
              static_cast<unsigned>(sizeof driver));
    nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda);
    nvml.call("nvmlDeviceGetCount_v2", &count);
    write_field("driver", driver);
    write_field("cuda", std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10));
    std::fflush(stdout);
    for (unsigned i = 0; i < count; ++i) write_gpu(nvml, i);
  }
  std::fflush(stdout);
  const std::string version = version_in_name(libraries.nccl);
  int number = 0;
  if (!version.empty()) {
    write_field("nccl", version);
  } else if (Library(libraries.nccl).call("ncclGetVersion", &number)) {
    write_field("nccl", std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) +
                            "." + std::to_string(number % 100));
  }
  std::fflush(stdout);
}

// Reads the child's output until it ends or time is up; returns whether it exited with 0.
bool read_until(pid_t child, int from, std::chrono::milliseconds timeout, std::string* output) {
  const double end = monotonic_seconds() + static_cast<double>(timeout.count()) / 1000;
  bool closed = false;
  while (!closed) {
    pollfd wait = {from, POLLIN, 0};
    const double left = end - monotonic_seconds();
    if (left <= 0) break;
    if (::poll(&wait, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    closed = n == 0;
    if (n > 0) output->append(buffer, static_cast<size_t>(n));
  }
  int status = 0;
  if (!closed) {
    ::kill(child, SIGKILL);
    // A process inside the driver may not be killable, so do not wait for it.
    return false;
  }
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void read_lines(const std::string& output, GpuFacts* gpu) {
  for (const std::string& line : split(output, '\n')) {
    const size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    const std::string what = line.substr(0, blank), value = line.substr(blank + 1);
    if (what == "problem") gpu->problem = value;
    if (what == "driver") gpu->driver = value;
    if (what == "cuda") gpu->cuda = value;
    if (what == "nccl") gpu->nccl = value;
    if (what != "gpu") continue;
    GpuState one;
    int name = 0;
    if (std::sscanf(value.c_str(), "%lld %lld %lld %n", &one.memory_used, &one.memory_total,
                    &one.uncorrected_errors, &name) == 3) {
      one.name = value.substr(static_cast<size_t>(name));
      gpu->gpus.push_back(std::move(one));
    }
  }
}

}  // namespace

GpuFacts probe_gpus(const GpuLibraries& libraries, std::chrono::milliseconds timeout) {
  GpuFacts gpu;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
  UniqueFd reading(ends[0]), writing(ends[1]);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw_errno("cannot start another process", {}, Wanted::kProcess);
  if (child == 0) {
    ::dup2(writing.get(), STDOUT_FILENO);
    tell(libraries);
    ::_exit(0);
  }
  writing.reset();
  std::string output;
  const bool well = read_until(child, reading.get(), timeout, &output);
  read_lines(output, &gpu);
  if (!well && gpu.problem.empty()) {
    gpu.problem = "the NVIDIA driver or libraries crash or do not answer within " +
                  std::to_string(timeout.count() / 1000) + " s";
  }
  gpu.cudnn = version_in_name(libraries.cudnn);
  return gpu;
}

GpuFacts probe_gpus(std::chrono::milliseconds timeout) {
  const std::vector<std::string> folders = library_folders(env_or("LD_LIBRARY_PATH", ""));
  GpuLibraries libraries;
  libraries.nccl = find_library("libnccl.so.2", folders);
  libraries.cudnn = find_library("libcudnn.so.9", folders);
  const bool module = std::filesystem::exists("/proc/driver/nvidia/version");
  const GpuInventory inventory = find_gpus();
  GpuFacts gpu;
  // Without a driver there is nothing to query.
  if (module || inventory.count > 0) gpu = probe_gpus(libraries, timeout);
  gpu.driver_module = module;
  gpu.devices = inventory.count;
  for (const int number : unreadable_gpus()) gpu.unreadable.push_back(number);
  gpu.peer_memory = std::filesystem::exists("/sys/module/nvidia_peermem");
  return gpu;
}

}  // namespace fleet
