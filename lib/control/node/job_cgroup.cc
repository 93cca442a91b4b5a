#include "node/job_cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/small_file.h"
#include "base/text.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

constexpr char kName[] = "fleetrun-";

// cgroup files require the text in one write and no other flags.
bool put(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The mount point of the unified hierarchy, alone or next to those of version 1.
std::string mount_point(const std::string& mounts) {
  for (const std::string& line : split(small_file(mounts), '\n')) {
    const size_t separator = line.find(" - cgroup2 ");
    if (separator == std::string::npos) continue;
    const auto words = split(line.substr(0, separator), ' ');
    if (words.size() > 4) return words[4];
  }
  return {};
}

// This process's own folder in it; "" without one, with the reason.
std::string own_folder(const CgroupFiles& files, std::string* why) {
  const std::string root = mount_point(files.mounts);
  if (root.empty()) return *why = "cgroup version 2 is not mounted", std::string();
  for (const std::string& line : split(small_file(files.own), '\n')) {
    if (!line.starts_with("0::")) continue;
    // In a container, the path may be the host's while only the container's part is mounted.
    for (const std::string& folder : {root + line.substr(3), root}) {
      if (::access((folder + "/cgroup.procs").c_str(), F_OK) == 0) return folder;
    }
  }
  return *why = "this process is not in a cgroup of version 2", std::string();
}

// Containers may share a cgroup, each with its own pid numbering.
std::string prefix_of(const CgroupFiles& files) {
  std::string space = files.pid_namespace.empty() ? pid_namespace() : files.pid_namespace;
  std::erase_if(space, [](char c) { return c < '0' || c > '9'; });
  return kName + space + "-";
}

}  // namespace

JobCgroup::JobCgroup(CgroupFiles files) : files_(std::move(files)) {}

JobCgroup::~JobCgroup() { remove(); }

bool JobCgroup::make() {
  if (there()) return true;
  remove_stale_job_cgroups(files_);
  const std::string parent = own_folder(files_, &why_);
  if (parent.empty()) return false;
  const std::string path = parent + "/" + prefix_of(files_) + std::to_string(::getpid());
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    why_ = path + " cannot be created: " + std::strerror(errno);
    return false;
  }
  path_ = path;
  if (::access((path + "/cgroup.kill").c_str(), W_OK) == 0) return true;
  why_ = "this kernel has no cgroup.kill";
  remove();
  return false;
}

void JobCgroup::take(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (there()) put(path_ + "/cgroup.procs", std::to_string(pid));  // it may have ended
  }
}

void JobCgroup::take_descendants(const std::vector<pid_t>& except) {
  for (int round = 0; round < 3; ++round) {
    const std::vector<pid_t> inside = members();
    std::vector<pid_t> outside = descendants(except);
    std::erase_if(outside, [&](pid_t pid) {
      return std::find(inside.begin(), inside.end(), pid) != inside.end();
    });
    if (outside.empty()) return;
    take(outside);
  }
}

std::vector<pid_t> JobCgroup::members() const {
  std::vector<pid_t> pids;
  for (const std::string& line : split(there() ? small_file(path_ + "/cgroup.procs") : "", '\n')) {
    long long pid = 0;
    if (parse_int(line, &pid)) pids.push_back(static_cast<pid_t>(pid));
  }
  return pids;
}

void JobCgroup::kill() {
  if (there()) put(path_ + "/cgroup.kill", "1");
}

void JobCgroup::remove() {
  if (there() && ::rmdir(path_.c_str()) != 0) {
    spdlog::debug("{} cannot be removed: {}", path_, std::strerror(errno));
  }
  path_.clear();
}

void remove_stale_job_cgroups(const CgroupFiles& files) {
  std::string why;
  const std::string parent = own_folder(files, &why), prefix = prefix_of(files);
  if (parent.empty()) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    long long pid = 0;
    if (!name.starts_with(prefix) || !parse_int(name.substr(prefix.size()), &pid)) continue;
    if (::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    put(entry.path().string() + "/cgroup.kill", "1");
    ::rmdir(entry.path().c_str());  // dying processes still hold it: a later call removes it
  }
}

}  // namespace fleet
