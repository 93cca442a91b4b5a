#include "node/oom_detector.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr char kRoot[] = "/sys/fs/cgroup";

bool is_readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

// The file of this process's cgroup that has a line "oom_kill N".
std::string own_counter() {
  for (const std::string& line : split(small_file("/proc/self/cgroup"), '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    // In a container, the path may be the host's while only the container's part is mounted.
    for (const std::string& folder : {path, std::string()}) {
      const std::string file = controllers.empty() ? kRoot + folder + "/memory.events"
                               : controllers == "memory"
                                   ? kRoot + ("/memory" + folder) + "/memory.oom_control"
                                   : std::string();
      if (!file.empty() && is_readable(file)) return file;
    }
  }
  return {};
}

std::optional<long long> read_counter(const std::string& path) {
  for (const std::string& line : split(small_file(path), '\n')) {
    long long count = 0;
    if (line.starts_with("oom_kill ") && parse_int(line.substr(9), &count)) return count;
  }
  return std::nullopt;
}

}  // namespace

OomDetector::OomDetector() : OomDetector(own_counter(), "/dev/kmsg") {}

OomDetector::OomDetector(std::string counter, const std::string& kernel_log)
    : counter_(std::move(counter)),
      before_(read_counter(counter_)),
      log_(::open(kernel_log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (log_) ::lseek(log_.get(), 0, SEEK_END);
}

long long OomDetector::killed() const {
  const auto now = read_counter(counter_);
  return before_ && now && *now > *before_ ? *now - *before_ : 0;
}

void OomDetector::begin() {
  before_ = read_counter(counter_);
  read_log();
  lines_.clear();
}

void OomDetector::read_log() {
  char record[8192];  // /dev/kmsg returns one record per read
  while (log_) {
    const ssize_t n = ::read(log_.get(), record, sizeof record);
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // overwritten before it was read
    if (n <= 0) break;
    const std::string_view text(record, static_cast<size_t>(n));
    if (text.find("Killed process ") != std::string_view::npos) lines_ += std::string(text) + "\n";
  }
}

std::string OomDetector::line_about(pid_t pid) {
  read_log();
  const size_t at = lines_.find("Killed process " + std::to_string(pid) + " ");
  if (at == std::string::npos) return {};
  return std::string(trim(lines_.substr(at, lines_.find('\n', at) - at)));
}

std::string explain_exit(OomDetector& watch, pid_t pid, int signal, bool* oom) {
  const std::string line = watch.line_about(pid);
  const long long killed = watch.killed();
  *oom = signal == SIGKILL && (killed > 0 || !line.empty());
  if (*oom) {
    return "the kernel killed it: out of memory" + (line.empty() ? "" : ": " + line) +
           "; use less memory (batch size, data workers), or raise the limit";
  }
  if (killed > 0) {
    return "the kernel has killed " + std::to_string(killed) +
           (killed == 1 ? " process" : " processes") + " here: out of memory";
  }
  if (signal == SIGKILL && watch.is_available())
    return "not out of memory; another process sent SIGKILL";
  return {};
}

}  // namespace fleet
