#include "base/limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <optional>
#include <system_error>

#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

// The soft limit, if any.
std::optional<unsigned long long> limit_of(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::string in_kib(unsigned long long bytes) { return std::to_string(bytes >> 10) + " KiB"; }

std::string now(const std::string& value) { return value.empty() ? "" : " (now " + value + ")"; }

// The folder of this process's cgroup that limits processes, and where its tree begins.
struct PidsCgroup {
  std::string root, path;
};

PidsCgroup pids_cgroup() {
  PidsCgroup found;
  for (const std::string& line : split(small_file("/proc/self/cgroup"), '\n')) {
    const size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
    if (controllers == std::string::npos || path == std::string::npos) continue;
    const std::string names = line.substr(controllers + 1, path - controllers - 1);
    if (names == "pids") return {"/sys/fs/cgroup/pids", line.substr(path + 1)};
    if (names.empty()) found = {"/sys/fs/cgroup", line.substr(path + 1)};
  }
  return found;
}

// The smallest pids.max of this process's cgroup and those above it, as " (now N)". In a container,
// the tree may begin below the path.
std::string pids_max() {
  PidsCgroup group = pids_cgroup();
  if (group.root.empty()) return "";
  std::optional<long long> smallest;
  for (;;) {
    long long value = 0;
    if (parse_int(small_file(group.root + group.path + "/pids.max"), &value)) {
      if (!smallest || value < *smallest) smallest = value;
    }
    if (group.path.empty()) break;
    group.path.resize(group.path.rfind('/') == std::string::npos ? 0 : group.path.rfind('/'));
  }
  return smallest ? now(std::to_string(*smallest)) : "";
}

std::string open_files() {
  const auto limit = limit_of(RLIMIT_NOFILE);
  return "raise the limit of open files, ulimit -n" + (limit ? now(std::to_string(*limit)) : "") +
         "; systemd: LimitNOFILE, containers: --ulimit nofile";
}

std::string processes() {
  const auto limit = limit_of(RLIMIT_NPROC);
  return "raise the limit of processes and threads: pids.max of the cgroup" + pids_max() +
         " (systemd: TasksMax, containers: --pids-limit), or ulimit -u" +
         (limit ? now(std::to_string(*limit)) : "");
}

std::string memory() {
  const auto limit = limit_of(RLIMIT_AS);
  return limit ? "raise the limit of address space, ulimit -v" + now(in_kib(*limit)) : "";
}

std::string kernel_setting(const std::string& name, std::string file) {
  return name + now(small_file("/proc/sys/" + std::move(file)));
}

std::string watches(int error) {
  const std::string setting =
      error == ENOSPC
          ? kernel_setting("fs.inotify.max_user_watches", "fs/inotify/max_user_watches")
          : kernel_setting("fs.inotify.max_user_instances", "fs/inotify/max_user_instances");
  return "raise " + setting + " with sysctl" + (error == ENOSPC ? "" : ", or " + open_files());
}

}  // namespace

std::string limit_behind(int error, Wanted wanted) {
  if (wanted == Wanted::kProcess && error == EAGAIN) return processes();
  if (wanted == Wanted::kWatch && (error == ENOSPC || error == EMFILE)) return watches(error);
  if (wanted == Wanted::kPort && (error == EADDRINUSE || error == EADDRNOTAVAIL)) {
    return "widen " +
           kernel_setting("net.ipv4.ip_local_port_range", "net/ipv4/ip_local_port_range") +
           " with sysctl, or end programs that use many ports";
  }
  switch (error) {
    case EMFILE:
      return open_files();
    case ENFILE:
      return "raise " + kernel_setting("fs.file-max", "fs/file-max") + " with sysctl";
    case ENOMEM:
      return memory();
    case EFBIG: {
      const auto limit = limit_of(RLIMIT_FSIZE);
      return limit ? "raise the limit of a file's size, ulimit -f" + now(in_kib(*limit)) : "";
    }
    default:
      return "";
  }
}

std::string text_with_limit(const std::exception& error) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const std::string limit = no_memory ? limit_behind(ENOMEM)
                            : system  ? limit_behind(system->code().value())
                                      : "";
  return (no_memory ? "out of memory" : error.what()) + (limit.empty() ? "" : "; " + limit);
}

}  // namespace fleet
