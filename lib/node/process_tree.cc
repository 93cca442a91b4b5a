#include "node/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace fleet {
namespace {

// From /proc/PID/stat: "PID (name) STATE PPID ...", where the name may hold anything.
bool read_parent(const std::string& pid, pid_t* parent) {
  try {
    const std::string stat = read_file("/proc/" + pid + "/stat");
    const size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 >= stat.size()) return false;
    *parent = static_cast<pid_t>(std::strtol(stat.c_str() + end + 4, nullptr, 10));
    return true;
  } catch (const Error&) {
    return false;  // it ended meanwhile
  }
}

// Process to parent.
std::map<pid_t, pid_t> all_processes() {
  std::map<pid_t, pid_t> all;
  DIR* proc = ::opendir("/proc");
  if (!proc) throw_errno("cannot list the processes", "/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const std::string name = entry->d_name;
    pid_t parent = 0;
    long long pid = 0;
    if (parse_int(name, &pid) && read_parent(name, &parent)) all[static_cast<pid_t>(pid)] = parent;
  }
  ::closedir(proc);
  return all;
}

}  // namespace

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    throw_errno("cannot become the parent of orphaned processes");
  }
}

std::vector<pid_t> children_of_self() {
  std::vector<pid_t> children;
  try {
    // Needs CONFIG_PROC_CHILDREN, which distributions have; it spares reading all of /proc.
    for (const std::string& part : split(read_file("/proc/thread-self/children"), ' ')) {
      long long pid = 0;
      if (parse_int(part, &pid)) children.push_back(static_cast<pid_t>(pid));
    }
  } catch (const Error&) {
    for (const auto& [pid, parent] : all_processes()) {
      if (parent == ::getpid()) children.push_back(pid);
    }
  }
  return children;
}

std::vector<pid_t> descendants(const std::vector<pid_t>& except) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, parent] : all_processes()) children.emplace(parent, pid);
  std::vector<pid_t> found, open = {::getpid()};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto it = first; it != last; ++it) {
      const pid_t pid = it->second;
      if (std::find(except.begin(), except.end(), pid) != except.end()) continue;
      open.push_back(pid);
      found.push_back(pid);
    }
  }
  return found;
}

bool has_descendants(const std::vector<pid_t>& except) {
  // Orphans become our children, so without a child there is nothing below either.
  siginfo_t info;
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  return except.empty() || !descendants(except).empty();
}

std::string describe_process(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto part = [&](const char* name) -> std::string {
    try {
      return std::string(trim(read_file(folder + name)));
    } catch (const Error&) {
      return {};
    }
  };
  std::string text = "pid " + std::to_string(pid);
  const std::string name = part("/comm"), channel = part("/wchan");
  if (!name.empty()) text += " (" + name + ")";
  const std::string stat = part("/stat");
  const size_t state = stat.rfind(") ");
  if (state != std::string::npos && state + 2 < stat.size()) {
    text += std::string(", state ") + stat[state + 2];
  }
  if (!channel.empty() && channel != "0") text += ", waiting in " + channel;
  return text;
}

}  // namespace fleet
