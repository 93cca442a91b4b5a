#include "node/process_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/proc_number.h"
#include "base/small_file.h"
#include "base/text.h"
#include "node/proc_view.h"

namespace fleet {
namespace {

// A file of /proc/PID; "" if the process has ended.
std::string process_file(pid_t pid, const char* name) {
  return small_file(proc_folder(pid) + "/" + name);
}

// Below, processes have their numbers in /proc; the public functions have pids.
using Children = std::multimap<pid_t, pid_t>;  // by parent

std::optional<ProcessStat> stat_of(pid_t number);

std::vector<pid_t> pids_of(const std::vector<pid_t>& numbers) {
  std::vector<pid_t> pids;
  for (const pid_t number : numbers) {
    const pid_t pid = ProcView::own().pid_of(number);
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

Children all_processes() {
  Children all;
  if (!ProcView::own().usable()) return all;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    long long pid = 0;
    if (!parse_int(entry->path().filename().string(), &pid)) continue;
    const auto stat = stat_of(static_cast<pid_t>(pid));
    if (stat) all.emplace(stat->parent, static_cast<pid_t>(pid));
  }
  if (error) throw Error(ErrorCode::kIo, "cannot list the processes: " + error.message(), "/proc");
  return all;
}

std::vector<pid_t> children_in(const Children& all, pid_t parent) {
  std::vector<pid_t> children;
  const auto [first, last] = all.equal_range(parent);
  for (auto it = first; it != last; ++it) children.push_back(it->second);
  return children;
}

// The children of all threads of a process. Needs CONFIG_PROC_CHILDREN, which distributions enable;
// it avoids reading all of /proc. The kernel may omit some while others end.
std::vector<pid_t> listed_children(pid_t parent) {
  std::vector<pid_t> children;
  if (!ProcView::own().usable()) return children;
  std::error_code error;  // it has ended
  for (std::filesystem::directory_iterator task("/proc/" + std::to_string(parent) + "/task", error),
       end;
       !error && task != end; task.increment(error)) {
    for (const std::string& part : split(small_file(task->path().string() + "/children"), ' ')) {
      long long pid = 0;
      if (parse_int(part, &pid)) children.push_back(static_cast<pid_t>(pid));
    }
  }
  return children;
}

// All processes below `root` except the subtrees of `except`, which are pids.
template <typename ChildrenOf>
std::vector<pid_t> below(pid_t root, const std::vector<pid_t>& except, ChildrenOf children_of) {
  const auto excepted = [&](pid_t number) {
    if (except.empty()) return false;
    const pid_t pid = ProcView::own().pid_of(number);
    return pid > 0 && std::find(except.begin(), except.end(), pid) != except.end();
  };
  std::vector<pid_t> found, open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : children_of(parent)) {
      if (excepted(child)) continue;
      open.push_back(child);
      found.push_back(child);
    }
  }
  return found;
}

std::vector<pid_t> below(pid_t root, const std::vector<pid_t>& except, const Children& all) {
  return below(root, except, [&](pid_t parent) { return children_in(all, parent); });
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
  if (!has_child()) return {};
  const pid_t self = own_proc_number();
  const std::vector<pid_t> listed = listed_children(self);
  return pids_of(listed.empty() ? children_in(all_processes(), self) : listed);
}

std::vector<pid_t> descendants(const std::vector<pid_t>& except) {
  if (!has_child()) return {};  // usually true at the end; avoids reading any list
  const pid_t self = own_proc_number();
  const std::vector<pid_t> listed = below(self, except, listed_children);
  // Callers repeat the call until it is empty.
  return pids_of(listed.empty() ? below(self, except, all_processes()) : listed);
}

std::vector<pid_t> processes_with_environment(const std::string& mark) {
  const Children children = all_processes();
  std::set<pid_t> found;
  for (const auto& [parent, number] : children) {
    // A zombie has no environment; that of another user's process is not readable.
    const std::string environment =
        '\0' + small_file("/proc/" + std::to_string(number) + "/environ");
    if (environment.find('\0' + mark) == std::string::npos) continue;
    found.insert(number);
    for (const pid_t child : below(number, {}, children)) {
      if (stat_of(child).value_or(ProcessStat()).state != 'Z') found.insert(child);
    }
  }
  found.erase(own_proc_number());
  return pids_of({found.begin(), found.end()});
}

std::vector<std::vector<pid_t>> process_trees(const std::vector<pid_t>& roots) {
  const Children children = all_processes();
  std::vector<std::vector<pid_t>> all;
  for (const pid_t root : roots) {
    all.push_back({root});
    const std::vector<pid_t> found = pids_of(below(ProcView::own().number_of(root), {}, children));
    all.back().insert(all.back().end(), found.begin(), found.end());
  }
  return all;
}

std::vector<double> cpu_seconds(const std::vector<pid_t>& roots) {
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::vector<double> all;
  for (const std::vector<pid_t>& tree : process_trees(roots)) {
    int64_t ticks = 0;
    for (const pid_t pid : tree) ticks += process_stat(pid).value_or(ProcessStat()).ticks;
    all.push_back(static_cast<double>(ticks) * tick);
  }
  return all;
}

std::string pid_namespace() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

namespace {

// Fields are numbered as in proc(5); the second, the name, may contain any character.
std::optional<ProcessStat> stat_of(pid_t number) {
  const std::string path = "/proc/" + std::to_string(number) + "/stat";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : 0;
  text[std::max<ssize_t>(size, 0)] = '\0';
  const char* at = std::strrchr(text, ')');
  if (!at || at[1] == '\0') return std::nullopt;
  at += 2;
  ProcessStat stat{.state = *at};
  for (int field = 3; *at != '\0' && field <= 24; ++field) {
    const int64_t value = std::strtoll(at, nullptr, 10);
    if (field == 4) stat.parent = static_cast<pid_t>(value);
    if (field >= 14 && field <= 17) stat.ticks += value;
    if (field == 19) stat.nice = static_cast<int>(value);
    if (field == 22) stat.start = value;
    if (field == 24) stat.memory = value * ::sysconf(_SC_PAGESIZE);
    at = std::strchr(at, ' ');
    if (!at) break;
    ++at;
  }
  return stat;
}

}  // namespace

std::optional<ProcessStat> process_stat(pid_t pid) {
  const ProcView& view = ProcView::own();
  std::optional<ProcessStat> stat = stat_of(view.number_of(pid));
  if (stat) stat->parent = view.pid_of(stat->parent);
  return stat;
}

char process_state(pid_t pid) { return process_stat(pid).value_or(ProcessStat()).state; }

std::string process_start_ticks(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat ? std::to_string(stat->start) : "";
}

std::string wait_channel(pid_t pid) {
  const std::string channel = process_file(pid, "wchan");
  return channel == "0" ? "" : channel;
}

bool has_descendants(const std::vector<pid_t>& except) {
  return has_child() && (except.empty() || !descendants(except).empty());
}

// The thread that keeps the process: the first thread may have ended before the others.
static pid_t thread_left(pid_t pid) {
  if (process_state(pid) != 'Z' || ProcView::own().number_of(pid) != pid) return pid;
  std::error_code error;
  const std::string threads = proc_folder(pid) + "/task";
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
  const std::string name = process_file(pid, "comm"), channel = wait_channel(thread);
  if (!name.empty()) text += " (" + name + "), state " + process_state(thread);
  if (!channel.empty()) text += ", waiting in " + channel;
  return text;
}

ExitOrder::ExitOrder() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void ExitOrder::watch(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!epoll_ || !pidfd) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(pid);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) return;
  watched_[pid] = std::move(pidfd);
}

std::vector<pid_t> ExitOrder::take() {
  std::vector<pid_t> ended;
  epoll_event events[64];
  while (!watched_.empty()) {
    const int count = ::epoll_wait(epoll_.get(), events, 64, 0);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      const pid_t pid = static_cast<pid_t>(events[i].data.u64);
      ended.push_back(pid);
      // Closing it is not enough if another process has inherited it.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_[pid].get(), nullptr);
      watched_.erase(pid);
    }
  }
  return ended;
}

}  // namespace fleet
