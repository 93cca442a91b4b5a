
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "node/live_reporter.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

// A process that does this, and dies with the object.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ == 0) {
      body();
      for (;;) ::pause();
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

constexpr size_t kBytes = 64 << 20;

void use_memory() {
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, kBytes);
}

// Samples until it holds. The bound is against hanging.
RankUsage sample_until(RankUsageSampler* sampler,
                       const std::function<bool(const RankUsage&)>& holds) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < end) {
    const auto all = sampler->sample(std::chrono::steady_clock::now());
    if (all.size() == 1 && holds(all[0])) return all[0];
    std::this_thread::sleep_for(10ms);
  }
  ADD_FAILURE() << "it never held";
  return {};
}

TEST(RankUsageSampler, BusyRank_UsesCpuTimeAndMemory) {
  const Child rank([] {
    use_memory();
    for (volatile unsigned i = 0;; i = i + 1) {
    }
  });
  RankUsageSampler sampler;
  sampler.watch({{3, rank.pid()}});
  const RankUsage usage = sample_until(&sampler, [](const RankUsage& now) {
    return now.cpu_ms() >= 200 && now.memory() >= static_cast<int64_t>(kBytes);
  });
  EXPECT_EQ(usage.local_rank(), 3);
  EXPECT_GT(usage.at_ns(), 0);
  EXPECT_GT(usage.cores(), 0);
}

TEST(RankUsageSampler, CoresThatRanksShare_CountInParts) {
  const Child one([] {}), other([] {});
  RankUsageSampler sampler;
  sampler.watch({{0, one.pid()}});
  const double all = sampler.sample(std::chrono::steady_clock::now()).at(0).cores();
  sampler.watch({{0, one.pid()}, {1, other.pid()}});
  const auto both = sampler.sample(std::chrono::steady_clock::now());
  EXPECT_DOUBLE_EQ(both.at(0).cores(), all / 2);
  EXPECT_DOUBLE_EQ(both.at(1).cores(), all / 2);
}

void compute() {
  for (volatile unsigned i = 0;; i = i + 1) {
  }
}

bool counts_busy_time() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return false;
  const std::vector<int64_t> ticks = busy_ticks();
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores) && (core >= ticks.size() || ticks[core] <= 0)) return false;
  }
  return true;
}

// The cores of a rank are busy with the ranks beside it and with processes that are no ranks.
TEST(RankUsageSampler, BusyTimeOfItsCores_IsDividedAmongRanksAndOthers) {
  if (!counts_busy_time()) GTEST_SKIP() << "/proc/stat does not count the time of every core";
  const Child rank(compute), other_rank(compute), other(compute);
  RankUsageSampler sampler;
  sampler.watch({{0, rank.pid()}, {1, other_rank.pid()}});
  const auto end = std::chrono::steady_clock::now() + 60s;
  std::vector<RankUsage> all;
  int64_t before = -1, used = 0;  // CPU time of both ranks
  do {
    std::this_thread::sleep_for(10ms);
    all = sampler.sample(std::chrono::steady_clock::now());
    ASSERT_EQ(all.size(), 2U);
    const int64_t now = all[0].cpu_ms() + all[1].cpu_ms();
    if (before < 0) before = now;
    used = now - before;
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  } while (all[0].busy_ms() < 1000 || used < 300);
  for (const RankUsage& usage : all) EXPECT_EQ(usage.ours_ms(), used);
  EXPECT_EQ(all[0].busy_ms(), all[1].busy_ms());
}

TEST(RankUsageSampler, ProcessesBelowTheRank_Count) {
  const Child rank([] {
    if (::fork() == 0) use_memory();
  });
  RankUsageSampler sampler;
  sampler.watch({{0, rank.pid()}});
  sample_until(&sampler,
               [](const RankUsage& now) { return now.memory() >= static_cast<int64_t>(kBytes); });
  // The grandchild is not ours to wait for: it goes with its memory.
  const std::vector<std::vector<pid_t>> trees = process_trees({rank.pid()});
  for (const pid_t pid : trees[0]) {
    if (pid != rank.pid()) ::kill(pid, SIGKILL);
  }
}

TEST(RankUsageSampler, NiceRank_IsSeenAsSuch) {
  const int expected = std::min(::getpriority(PRIO_PROCESS, 0) + 7, 19);
  const Child rank([] { (void)!::nice(7); });
  RankUsageSampler sampler;
  sampler.watch({{0, rank.pid()}});
  sample_until(&sampler, [&](const RankUsage& now) { return now.nice() == expected; });
}

TEST(RankUsageSampler, EndedRank_IsLeftOut) {
  RankUsageSampler sampler;
  pid_t pid = 0;
  {
    const Child rank([] {});
    pid = rank.pid();
    sampler.watch({{0, pid}});
    EXPECT_EQ(sampler.sample(std::chrono::steady_clock::now()).size(), 1u);
  }
  EXPECT_TRUE(sampler.sample(std::chrono::steady_clock::now()).empty());
}

struct CpuQuotaTest : ::testing::Test {
  CpuQuotaTest() {
    std::string pattern = ::testing::TempDir() + "cpu_quota_XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~CpuQuotaTest() override { std::filesystem::remove_all(root); }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string root;
};

TEST_F(CpuQuotaTest, NoCgroup_HasNone) { EXPECT_EQ(cpu_quota(1, root).cores, 0); }

TEST_F(CpuQuotaTest, VersionTwo_TightestOfTheParentsCounts) {
  write("/proc/7/cgroup", "0::/pod/container\n");
  write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500\n");
  EXPECT_DOUBLE_EQ(cpu_quota(7, root).cores, 1.5);
  EXPECT_EQ(cpu_quota(7, root).throttled_ns, 2'500'000);
}

TEST_F(CpuQuotaTest, VersionOne_IsRead) {
  write("/proc/7/cgroup", "5:memory:/x\n3:cpu,cpuacct:/job\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 1\nthrottled_time 77\n");
  EXPECT_DOUBLE_EQ(cpu_quota(7, root).cores, 0.5);
  EXPECT_EQ(cpu_quota(7, root).throttled_ns, 77);
}

TEST_F(CpuQuotaTest, VersionOneWithoutLimit_HasNone) {
  write("/proc/7/cgroup", "3:cpu:/\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(7, root).cores, 0);
}

TEST_F(CpuQuotaTest, BusyTicks_AreThoseOfProcessesByCore) {
  EXPECT_TRUE(busy_ticks(root).empty());
  write("/proc/stat",
        "cpu  60 6 9 1000 5 7 8 0 0 0\n"
        "cpu0 10 1 2 500 5 7 8 0 0 0\n"
        "cpu3 50 5 7 500 0 0 0 0 0 0\n"
        "intr 12345 1 2 3\n");
  EXPECT_THAT(busy_ticks(root), ::testing::ElementsAre(13, -1, -1, 62));
}

TEST(UsageInterval, GrowsWithTheJob) {
  EXPECT_EQ(usage_interval(1), 1s);
  EXPECT_EQ(usage_interval(64), 1s);
  EXPECT_EQ(usage_interval(65), 2s);
  EXPECT_EQ(usage_interval(6400), 100s);
}

}  // namespace
}  // namespace fleet
