#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "node/live_reporter.h"
#include "node/proc_view.h"
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
  const std::string text = small_file(proc_folder(pid) + "/schedstat");
  return std::strtoll(text.c_str() + std::min(text.find(' '), text.size()), nullptr, 10);
}

// The cores that a process may run on.
std::vector<size_t> allowed_cores(pid_t pid) {
  cpu_set_t set;
  if (::sched_getaffinity(pid, sizeof set, &set) != 0) return {};
  std::vector<size_t> cores;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int64_t ms_per_tick() {
  static const int64_t ms = 1000 / ::sysconf(_SC_CLK_TCK);
  return ms;
}

}  // namespace

CpuQuota cpu_quota(pid_t pid, const std::string& root) {
  CpuQuota tightest;
  const std::string list = root + proc_folder(pid) + "/cgroup";
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

std::vector<int64_t> busy_ticks(const std::string& root) {
  std::vector<int64_t> ticks;
  const std::string text = small_file(root + "/proc/stat");
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with("cpu")) break;  // the cores come first
    // "cpu3 user nice system idle ..."; the first line is the sum of all.
    const std::vector<std::string> fields = split(line, ' ');
    long long core = 0;
    if (fields.size() < 4 || !parse_int(fields[0].substr(3), &core)) continue;
    if (core < 0 || core >= CPU_SETSIZE) continue;
    ticks.resize(std::max(ticks.size(), static_cast<size_t>(core) + 1), -1);
    ticks[static_cast<size_t>(core)] = number(fields[1]) + number(fields[2]) + number(fields[3]);
  }
  return ticks;
}

void RankUsageSampler::watch(const std::vector<Target>& targets) {
  ranks_.clear();
  ticks_.clear();
  for (const Target& target : targets)
    ranks_.push_back({.target = target, .tree = {}, .quota = {}});
  next_search_ = {};
}

void RankUsageSampler::find_processes(Time now) {
  const Time begun = std::chrono::steady_clock::now();
  std::vector<pid_t> roots;
  for (const Rank& rank : ranks_) roots.push_back(rank.target.pid);
  std::vector<std::vector<pid_t>> trees = process_trees(roots);
  std::map<size_t, std::vector<size_t>> users;  // ranks, by core
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].tree = std::move(trees[i]);
    ranks_[i].quota = cpu_quota(ranks_[i].target.pid);
    ranks_[i].allowed = allowed_cores(ranks_[i].target.pid);
    for (const size_t core : ranks_[i].allowed) users[core].push_back(i);
  }
  for (Rank& rank : ranks_) {
    std::set<size_t> neighbours;
    rank.cores = 0;
    for (const size_t core : rank.allowed) {
      const std::vector<size_t>& here = users[core];
      rank.cores += 1.0 / static_cast<double>(here.size());
      neighbours.insert(here.begin(), here.end());
    }
    rank.neighbours.assign(neighbours.begin(), neighbours.end());
  }
  const Time::duration took = std::chrono::steady_clock::now() - begun;
  next_search_ = now + std::max<Time::duration>(kMinSearchInterval, kSearchShare * took);
}

bool RankUsageSampler::add(const Rank& rank, RankUsage* usage) {
  bool lives = false;
  for (const pid_t pid : rank.tree) {
    const auto stat = process_stat(pid);
    if (!stat) continue;
    if (pid == rank.target.pid) {
      lives = true;
      usage->set_nice(stat->nice);
    }
    usage->set_cpu_ms(usage->cpu_ms() + stat->ticks * ms_per_tick());
    usage->set_memory(usage->memory() + stat->memory);
  }
  return lives;
}

// Adds what was used since the previous sample. Summing intervals is correct even if a rank changes
// its cores.
void RankUsageSampler::add_busy_time(const std::vector<RankUsage>& usages) {
  std::vector<int64_t> used(ranks_.size());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    int64_t& before = ranks_[i].cpu_ms;
    if (before >= 0) used[i] = std::max<int64_t>(0, usages[i].cpu_ms() - before);
    before = usages[i].cpu_ms();
  }
  const std::vector<int64_t> before = std::exchange(ticks_, busy_ticks());
  const auto ticks_of = [](const std::vector<int64_t>& ticks, size_t core) {
    return core < ticks.size() ? ticks[core] : int64_t{-1};
  };
  for (Rank& rank : ranks_) {
    int64_t busy = 0;
    const bool known = std::ranges::all_of(rank.allowed, [&](size_t core) {
      const int64_t from = ticks_of(before, core), to = ticks_of(ticks_, core);
      busy += std::max<int64_t>(0, to - from);
      return from >= 0 && to >= 0;
    });
    if (!known) continue;
    rank.busy_ms += busy * ms_per_tick();
    for (const size_t neighbour : rank.neighbours) rank.ours_ms += used[neighbour];
  }
}

std::vector<RankUsage> RankUsageSampler::sample(Time now) {
  if (now >= next_search_) find_processes(now);
  std::vector<RankUsage> usages(ranks_.size());
  std::vector<bool> lives;
  for (size_t i = 0; i < ranks_.size(); ++i) lives.push_back(add(ranks_[i], &usages[i]));
  add_busy_time(usages);
  std::vector<RankUsage> all;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    RankUsage& usage = usages[i];
    if (!lives[i]) continue;
    usage.set_local_rank(rank.target.local_rank);
    usage.set_at_ns(steady_ns(now));
    usage.set_delayed_ns(run_delay(rank.target.pid));
    usage.set_throttled_ns(rank.quota.throttled_ns);
    usage.set_quota(rank.quota.cores);
    usage.set_cores(rank.cores);
    usage.set_busy_ms(rank.busy_ms);
    usage.set_ours_ms(rank.ours_ms);
    all.push_back(std::move(usage));
  }
  return all;
}

}  // namespace fleet
