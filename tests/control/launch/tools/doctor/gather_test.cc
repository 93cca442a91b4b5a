// Facts about a machine, gathered from fake folders, libraries and nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "launch/planning/cores.h"
#include "launch/tools/doctor/facts.h"
#include "launch/tools/doctor/reachability.h"
#include "node/reserved_ports.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class Root : public testing::Test {
 protected:
  Root() {
    std::string name = testing::TempDir() + "/gather.XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Root() override { std::filesystem::remove_all(path); }
  void write(const std::string& file, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path + file).parent_path());
    std::ofstream(path + file) << content;
  }
  std::string path;
};
using Cgroup = Root;
using Rdma = Root;
using NcclConf = Root;

TEST_F(Cgroup, Version2_TightestOfAllLevels) {
  write("/proc/self/cgroup", "0::/kube/pod/box\n");
  write("/sys/fs/cgroup/kube/pod/box/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/kube/pod/cpu.max", "250000 100000\n");
  write("/sys/fs/cgroup/kube/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/kube/pod/box/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/kube/memory.max", "8589934592\n");
  const CgroupLimits limits = cgroup_limits(path);
  EXPECT_DOUBLE_EQ(limits.cpus, 2.5);
  EXPECT_EQ(limits.memory, 1LL << 30);
}
TEST_F(Cgroup, Version2_InAContainer_PathOfTheHost) {
  write("/proc/self/cgroup", "0::/../../docker/abc\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_limits(path).cpus, 0.5);
}
TEST_F(Cgroup, Version1) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:pids:/x\n");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "150000\n");
  write("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  const CgroupLimits limits = cgroup_limits(path);
  EXPECT_DOUBLE_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.memory, 2LL << 30);
}
TEST_F(Cgroup, None_IsNoLimit) {
  const CgroupLimits limits = cgroup_limits(path);
  EXPECT_EQ(limits.cpus, 0);
  EXPECT_EQ(limits.memory, 0);
}

TEST_F(Rdma, PortsAndTheirState) {
  write("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  write("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  write("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  const auto ports = read_rdma(path);
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].device, "mlx5_0");
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].link_layer, "InfiniBand");
  EXPECT_EQ(ports[0].rate, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(ports[1].state, "DOWN");
}

TEST_F(NcclConf, SettingsWithoutComments) {
  write("/nccl.conf", "# ours\nNCCL_DEBUG=WARN\n\nNCCL_SOCKET_IFNAME==ens1f0\n");
  EXPECT_THAT(
      read_nccl_conf(path + "/nccl.conf"),
      UnorderedElementsAre(Pair("NCCL_DEBUG", "WARN"), Pair("NCCL_SOCKET_IFNAME", "=ens1f0")));
  EXPECT_THAT(read_nccl_conf(path + "/none"), IsEmpty());
}

TEST(Gather, ThisMachine_HasCoresMemoryAndLo) {
  const NodeFacts node = gather_facts({"NCCL_DEBUG=WARN", "HOME=/"}, "/nowhere/log");
  EXPECT_GT(node.machine.cores, 0);
  EXPECT_GT(node.machine.memory, 0);
  EXPECT_EQ(node.machine.log_dir, "/");
  ASSERT_NE(node.interface("lo"), nullptr);
  EXPECT_TRUE(node.interface("lo")->loopback);
  EXPECT_EQ(node.environment, (std::map<std::string, std::string>{{"NCCL_DEBUG", "WARN"}}));
}

GpuLibraries fake(const std::string& kind) {
  const std::string library = program_folder() + "/libdoctor_fake_" + kind + ".so";
  return {library, library, "/lib/libcudnn.so.9.19.0"};
}

TEST(GpuProbe, DriverAnswers) {
  const GpuFacts gpu = probe_gpus(fake("gpus"), std::chrono::seconds(30));
  EXPECT_EQ(gpu.problem, "");
  EXPECT_EQ(gpu.driver, "580.65.06");
  EXPECT_EQ(gpu.cuda, "13.0");
  EXPECT_EQ(gpu.nccl, "2.28.9");
  EXPECT_EQ(gpu.cudnn, "9.19.0");
  ASSERT_EQ(gpu.gpus.size(), 2u);
  EXPECT_EQ(gpu.gpus[1].name, "NVIDIA Fake 200");
  EXPECT_EQ(gpu.gpus[1].memory_used, 5 << 20);
  EXPECT_EQ(gpu.gpus[1].memory_total, 140LL << 30);
  EXPECT_EQ(gpu.gpus[1].uncorrected_errors, 7);
}
TEST(GpuProbe, DriverHangs_IsGivenUp) {
  const GpuFacts gpu = probe_gpus(fake("hang"), std::chrono::milliseconds(50));
  EXPECT_THAT(gpu.problem, HasSubstr("do not answer within"));
}
TEST(GpuProbe, DriverCrashes_IsAFinding) {
  const GpuFacts gpu = probe_gpus(fake("crash"), std::chrono::seconds(30));
  EXPECT_THAT(gpu.problem, HasSubstr("crash"));
}
TEST(GpuProbe, NoLibrary_NoGpuAndNoProblem) {
  const GpuFacts gpu = probe_gpus({"libnone.so", "", ""}, std::chrono::seconds(30));
  EXPECT_EQ(gpu.problem, "");
  EXPECT_THAT(gpu.gpus, IsEmpty());
}

struct Reaching : testing::Test {
  ReservedPort held = ReservedPort::any("127.0.0.1");
  Reach reach(uint64_t token, int rank, double step_timeout = 30) const {
    return reach_all({{rank, "127.0.0.1", held.port()}}, token, step_timeout).at(0);
  }
};

TEST_F(Reaching, Node_AnswersWithItsClock_OnAHeldPort) {
  const ReachServer server("127.0.0.1", held.port(), 42, 3);
  const Reach found = reach(42, 3);
  EXPECT_EQ(found.result, ReachResult::kOk) << found.detail;
  EXPECT_EQ(found.node_rank, 3);
  EXPECT_LE(std::abs(found.clock_offset), found.round_trip / 2 + 1e-3);
}
TEST_F(Reaching, Many_AtOnce) {
  const ReachServer server("127.0.0.1", held.port(), 42, 3);
  const std::vector<ReachTarget> targets(300, {3, "127.0.0.1", held.port()});
  for (const Reach& found : reach_all(targets, 42, 30)) {
    EXPECT_EQ(found.result, ReachResult::kOk) << found.detail;
  }
}
TEST_F(Reaching, NobodyListens_Refused) { EXPECT_EQ(reach(42, 3).result, ReachResult::kRefused); }
TEST_F(Reaching, AnotherNodeOrJob_IsAStranger) {
  const ReachServer server("127.0.0.1", held.port(), 42, 3);
  const Reach job = reach(41, 3), node = reach(42, 2);
  EXPECT_EQ(job.result, ReachResult::kUnexpectedPeer);
  EXPECT_EQ(job.detail, "it belongs to another job");
  EXPECT_EQ(node.result, ReachResult::kUnexpectedPeer);
  EXPECT_EQ(node.detail, "it is node 3 of this job");
}
TEST_F(Reaching, SilentPort_IsAStranger) {
  // Connections are accepted by the kernel, and nobody speaks.
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(listener.get(), 5), 0);
  sockaddr_in at = {};
  socklen_t size = sizeof at;
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  const auto found = reach_all({{1, "127.0.0.1", ntohs(at.sin_port)}}, 42, 0.05).at(0);
  EXPECT_EQ(found.result, ReachResult::kUnexpectedPeer);
  EXPECT_EQ(found.detail, "it sends nothing");
}

}  // namespace
}  // namespace fleet
