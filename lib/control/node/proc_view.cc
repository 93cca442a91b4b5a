#include "node/proc_view.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <vector>

#include "base/proc_number.h"
#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

std::string status_of(const std::string& process) {
  return small_file("/proc/" + process + "/status");
}

// The pids of a process, from the namespace of /proc to its own. Empty before Linux 4.1.
std::vector<pid_t> pids_in(const std::string& status) {
  constexpr std::string_view kName = "\nNSpid:";
  const size_t at = status.find(kName);
  if (at == std::string::npos) return {};
  const size_t begin = at + kName.size();
  std::vector<pid_t> pids;
  for (const std::string& word :
       split(status.substr(begin, status.find('\n', begin) - begin), '\t')) {
    long long pid = 0;
    if (parse_int(trim(word), &pid)) pids.push_back(static_cast<pid_t>(pid));
  }
  return pids;
}

std::string namespace_of(const std::string& process) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/pid", error).string();
}

int own_level() {
  const std::string status = status_of("self");
  if (status.empty()) return -1;
  const std::vector<pid_t> pids = pids_in(status);
  if (pids.empty()) return own_proc_number() == ::getpid() ? 0 : -1;
  return static_cast<int>(pids.size()) - 1;
}

}  // namespace

const ProcView& ProcView::own() {
  static const ProcView view(own_level());  // a fork keeps it
  return view;
}

pid_t ProcView::pid_in(const std::string& status) const {
  const std::vector<pid_t> pids = pids_in(status);
  const auto level = static_cast<size_t>(level_);
  return usable() && level < pids.size() ? pids[level] : -1;
}

pid_t ProcView::pid_of(pid_t number) const {
  return level_ == 0 ? number : pid_in(status_of(std::to_string(number)));
}

pid_t ProcView::number_of(pid_t pid) const {
  if (level_ <= 0) return usable() ? pid : -1;
  if (pid == ::getpid()) return own_proc_number();
  thread_local std::map<pid_t, pid_t> known;
  const auto found = known.find(pid);
  if (found != known.end() && pid_of(found->second) == pid) return found->second;
  return known[pid] = search(pid);
}

// Reads all of /proc, which only a foreign one needs.
pid_t ProcView::search(pid_t pid) const {
  const std::string own = namespace_of("self");
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string process = entry->path().filename().string();
    long long number = 0;
    if (!parse_int(process, &number) || pid_in(status_of(process)) != pid) continue;
    if (namespace_of(process) == own) return static_cast<pid_t>(number);
  }
  return -1;
}

std::string proc_folder(pid_t pid) {
  return "/proc/" + std::to_string(ProcView::own().number_of(pid));
}

}  // namespace fleet
