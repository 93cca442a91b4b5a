#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "node/live_reporter.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

constexpr std::chrono::seconds kMinSearchInterval{5};
constexpr int kSearchShare = 200;  // a search may take 1/200 of the time

long long number(const std::string& text) {
  long long value = 0;
  return parse_int(text, &value) && value > 0 ? value : 0;
}

// The value behind a name in a file of lines "name value"; 0 if none.
long long value_of(const std::string& file, const std::string& name) {
  for (const std::string& line : split(file, '\n')) {
    if (line.starts_with(name + " ")) return number(std::string(trim(line.substr(name.size()))));
  }
  return 0;
}

CpuQuota quota_in(const std::string& folder) {
  std::vector<std::string> limit = split(small_file(folder + "/cpu.max"), ' ');  // version 2
  const bool second = limit.size() == 2;
  if (!second) {
    limit = {small_file(folder + "/cpu.cfs_quota_us"), small_file(folder + "/cpu.cfs_period_us")};
  }
  const long long quota = number(limit[0]), period = number(limit[1]);
  if (quota == 0 || period == 0) return {};
  const std::string stat = small_file(folder + "/cpu.stat");
  return {static_cast<double>(quota) / static_cast<double>(period),
          second ? 1000 * value_of(stat, "throttled_usec") : value_of(stat, "throttled_time")};
}

// Nanoseconds in which its first thread was ready to run but another one had its core.
int64_t run_delay(pid_t pid) {
  const std::string text = small_file("/proc/" + std::to_string(pid) + "/schedstat");
  return std::strtoll(text.c_str() + std::min(text.find(' '), text.size()), nullptr, 10);
}

// For each process, the cores it may run on; one that n of them share counts 1 / n.
std::vector<double> shares_of_cores(const std::vector<pid_t>& pids) {
  std::vector<cpu_set_t> sets(pids.size());
  std::array<int, CPU_SETSIZE> users{};
  for (size_t i = 0; i < pids.size(); ++i) {
    if (::sched_getaffinity(pids[i], sizeof sets[i], &sets[i]) != 0) CPU_ZERO(&sets[i]);
    for (size_t core = 0; core < users.size(); ++core) users[core] += CPU_ISSET(core, &sets[i]);
  }
  std::vector<double> shares(pids.size());
  for (size_t i = 0; i < pids.size(); ++i) {
    for (size_t core = 0; core < users.size(); ++core) {
      if (CPU_ISSET(core, &sets[i])) shares[i] += 1.0 / users[core];
    }
  }
  return shares;
}

}  // namespace

CpuQuota cpu_quota(pid_t pid, const std::string& root) {
  CpuQuota tightest;
  const std::string list = root + "/proc/" + std::to_string(pid) + "/cgroup";
  for (const std::string& line : split(small_file(list), '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> names = split(line.substr(first + 1, second - first - 1), ',');
    if (!names.empty() && std::ranges::find(names, "cpu") == names.end()) continue;
    const std::string base = root + "/sys/fs/cgroup" + (names.empty() ? "" : "/cpu");
    // In a container the path may be the host's, while only the container's part is mounted.
    for (std::string path = line.substr(second + 1);; path = path.substr(0, path.rfind('/'))) {
      const CpuQuota quota = quota_in(base + (path == "/" ? "" : path));
      if (quota.cores > 0 && (tightest.cores == 0 || quota.cores < tightest.cores)) {
        tightest = quota;
      }
      if (path.empty() || path == "/") break;
    }
  }
  return tightest;
}

void RankUsageSampler::watch(const std::vector<Target>& targets) {
  ranks_.clear();
  for (const Target& target : targets)
    ranks_.push_back({.target = target, .tree = {}, .quota = {}});
  next_search_ = {};
}

void RankUsageSampler::find_processes(Time now) {
  const Time begun = std::chrono::steady_clock::now();
  std::vector<pid_t> roots;
  for (const Rank& rank : ranks_) roots.push_back(rank.target.pid);
  std::vector<std::vector<pid_t>> trees = process_trees(roots);
  const std::vector<double> cores = shares_of_cores(roots);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].tree = std::move(trees[i]);
    ranks_[i].cores = cores[i];
    ranks_[i].quota = cpu_quota(ranks_[i].target.pid);
  }
  const Time::duration took = std::chrono::steady_clock::now() - begun;
  next_search_ = now + std::max<Time::duration>(kMinSearchInterval, kSearchShare * took);
}

bool RankUsageSampler::add(const Rank& rank, RankUsage* usage) {
  static const int64_t ms_per_tick = 1000 / ::sysconf(_SC_CLK_TCK);
  bool lives = false;
  for (const pid_t pid : rank.tree) {
    const auto stat = process_stat(pid);
    if (!stat) continue;
    if (pid == rank.target.pid) {
      lives = true;
      usage->set_nice(stat->nice);
    }
    usage->set_cpu_ms(usage->cpu_ms() + stat->ticks * ms_per_tick);
    usage->set_memory(usage->memory() + stat->memory);
  }
  return lives;
}

std::vector<RankUsage> RankUsageSampler::sample(Time now) {
  if (now >= next_search_) find_processes(now);
  std::vector<RankUsage> all;
  for (const Rank& rank : ranks_) {
    RankUsage usage;
    if (!add(rank, &usage)) continue;
    usage.set_local_rank(rank.target.local_rank);
    usage.set_at_ns(steady_ns(now));
    usage.set_delayed_ns(run_delay(rank.target.pid));
    usage.set_throttled_ns(rank.quota.throttled_ns);
    usage.set_quota(rank.quota.cores);
    usage.set_cores(rank.cores);
    all.push_back(std::move(usage));
  }
  return all;
}

}  // namespace fleet
