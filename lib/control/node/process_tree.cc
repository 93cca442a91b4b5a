#include "node/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

// A file of /proc/PID; "" if the process has ended.
std::string proc_file(pid_t pid, const char* name) {
  return small_file("/proc/" + std::to_string(pid) + "/" + name);
}

// The fields of /proc/PID/stat from the third on (the state); the name before them may contain any
// character. Empty if the process is gone.
std::vector<std::string> stat_fields(pid_t pid) {
  const std::string stat = proc_file(pid, "stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos ? std::vector<std::string>()
                                  : split(trim(stat.substr(end + 1)), ' ');
}

long long field(const std::vector<std::string>& fields, size_t at) {
  long long value = 0;
  return at < fields.size() && parse_int(fields[at], &value) ? value : 0;
}

// Process to parent.
std::map<pid_t, pid_t> all_processes() {
  std::map<pid_t, pid_t> all;
  DIR* proc = ::opendir("/proc");
  if (!proc) throw_errno("cannot list the processes", "/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const std::string name = entry->d_name;
    long long pid = 0;
    if (!parse_int(name, &pid)) continue;
    const auto fields = stat_fields(static_cast<pid_t>(pid));
    if (!fields.empty()) all[static_cast<pid_t>(pid)] = static_cast<pid_t>(field(fields, 1));
  }
  ::closedir(proc);
  return all;
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, parent] : all_processes()) children.emplace(parent, pid);
  return children;
}

std::vector<pid_t> below(const std::multimap<pid_t, pid_t>& children, pid_t root,
                         const std::vector<pid_t>& except) {
  std::vector<pid_t> found, open = {root};
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

void add_pids(const std::string& text, std::vector<pid_t>* pids) {
  for (const std::string& part : split(text, ' ')) {
    long long pid = 0;
    if (parse_int(part, &pid)) pids->push_back(static_cast<pid_t>(pid));
  }
}

// The children of all threads of a process. Needs CONFIG_PROC_CHILDREN, which distributions enable;
// it avoids reading all of /proc. The kernel may omit some while others end.
std::vector<pid_t> listed_children(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  DIR* folder = ::opendir(tasks.c_str());
  if (!folder) return children;  // it has ended
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    add_pids(small_file(tasks + "/" + entry->d_name + "/children"), &children);
  }
  ::closedir(folder);
  return children;
}

std::vector<pid_t> listed_descendants(const std::vector<pid_t>& except) {
  std::vector<pid_t> found, open = {::getpid()};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : listed_children(parent)) {
      if (std::find(except.begin(), except.end(), child) != except.end()) continue;
      open.push_back(child);
      found.push_back(child);
    }
  }
  return found;
}

// Orphans become our children, so without a child there are no descendants either.
bool has_child() {
  siginfo_t info;
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
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
    add_pids(read_file("/proc/thread-self/children"), &children);
  } catch (const Error&) {
    for (const auto& [pid, parent] : all_processes()) {
      if (parent == ::getpid()) children.push_back(pid);
    }
  }
  return children;
}

std::vector<pid_t> descendants(const std::vector<pid_t>& except) {
  if (!has_child()) return {};  // usually true at the end; avoids reading any list
  std::vector<pid_t> listed = listed_descendants(except);
  if (!listed.empty()) return listed;  // callers repeat the call until it is empty
  return below(children_by_parent(), ::getpid(), except);
}

std::vector<pid_t> processes_with_environment(const std::string& mark) {
  const auto children = children_by_parent();
  std::set<pid_t> found;
  for (const auto& [parent, pid] : children) {
    // A zombie has no environment; that of another user's process is not readable.
    const std::string environment = '\0' + proc_file(pid, "environ");
    if (environment.find('\0' + mark) == std::string::npos) continue;
    found.insert(pid);
    for (const pid_t child : below(children, pid, {})) {
      if (process_state(child) != 'Z') found.insert(child);
    }
  }
  found.erase(::getpid());
  return {found.begin(), found.end()};
}

std::vector<double> cpu_seconds(const std::vector<pid_t>& roots) {
  const auto children = children_by_parent();
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::vector<double> all;
  for (const pid_t root : roots) {
    std::vector<pid_t> tree = below(children, root, {});
    tree.push_back(root);
    long long ticks = 0;
    for (const pid_t pid : tree) {
      const auto fields = stat_fields(pid);
      // Its own, and that of ended children.
      for (size_t at = 11; at < 15; ++at) ticks += field(fields, at);
    }
    all.push_back(static_cast<double>(ticks) * tick);
  }
  return all;
}

char process_state(pid_t pid) {
  const auto fields = stat_fields(pid);
  return fields.empty() || fields[0].empty() ? '?' : fields[0][0];
}

std::string process_start_ticks(pid_t pid) {
  const auto fields = stat_fields(pid);
  return fields.size() > 19 ? fields[19] : "";
}

std::string wait_channel(pid_t pid) {
  const std::string channel = proc_file(pid, "wchan");
  return channel == "0" ? "" : channel;
}

bool has_descendants(const std::vector<pid_t>& except) {
  return has_child() && (except.empty() || !descendants(except).empty());
}

// The thread that keeps the process: the first thread may have ended before the others.
static pid_t thread_left(pid_t pid) {
  if (process_state(pid) != 'Z') return pid;
  std::error_code error;
  const std::string threads = "/proc/" + std::to_string(pid) + "/task";
  for (std::filesystem::directory_iterator entry(threads, error), end; !error && entry != end;
       entry.increment(error)) {
    long long thread = 0;
    if (!parse_int(entry->path().filename().string(), &thread)) continue;
    if (process_state(static_cast<pid_t>(thread)) != 'Z') return static_cast<pid_t>(thread);
  }
  return pid;
}

std::string describe_process(pid_t pid) {
  std::string text = "pid " + std::to_string(pid);
  const pid_t thread = thread_left(pid);
  const std::string name = proc_file(pid, "comm"), channel = wait_channel(thread);
  if (!name.empty()) text += " (" + name + "), state " + process_state(thread);
  if (!channel.empty()) text += ", waiting in " + channel;
  return text;
}

}  // namespace fleet
