#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/tools/doctor/checks.h"
#include "tests/control/launch/tools/doctor/facts.h"

namespace fleet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void expect(NodeCheck check, const NodeFacts& node, Severity worst,
            const std::vector<std::string>& texts) {
  const Findings found = check(node);
  EXPECT_EQ(worst_of(found), worst) << said(found);
  for (const std::string& text : texts) EXPECT_THAT(said(found), HasSubstr(text));
}

TEST(Node, Healthy_NothingIsWrong) {
  const Findings found = check_node(healthy_node());
  EXPECT_EQ(worst_of(found), Severity::kOk) << said(found);
  EXPECT_GE(found.size(), 11u);
}

TEST(Gpus, Counted_WithDriver) {
  expect(check_gpus, healthy_node(), Severity::kOk,
         {"2 x NVIDIA H200, driver 580.65.06 for CUDA 13.0"});
}
TEST(Gpus, None_RanksRunOnTheCpus) {
  NodeFacts node = healthy_node();
  node.gpu = {};
  expect(check_gpus, node, Severity::kOk, {"no GPU"});
  EXPECT_THAT(check_libraries(node), IsEmpty());
}
TEST(Gpus, DriverHangs_Fails) {
  NodeFacts node = healthy_node();
  node.gpu.problem = "the NVIDIA driver does not answer";
  expect(check_gpus, node, Severity::kFail, {"does not answer", "nvidia-smi"});
}
TEST(Gpus, LibraryMissing_Fails) {
  NodeFacts node = healthy_node();
  node.gpu.gpus.clear();
  expect(check_gpus, node, Severity::kFail, {"libnvidia-ml.so.1", "--gpus all"});
}
TEST(Gpus, InUse_Warns) {
  NodeFacts node = healthy_node();
  node.gpu.gpus[1].memory_used = 40LL << 30;
  expect(check_gpus, node, Severity::kWarn, {"40960 MiB of GPU 1 already"});
}
TEST(Gpus, BrokenMemory_Fails) {
  NodeFacts node = healthy_node();
  node.gpu.gpus[0].uncorrected_errors = 3;
  expect(check_gpus, node, Severity::kFail, {"uncorrected memory errors on GPU 0"});
}
TEST(Gpus, NotToBeOpened_Warns) {
  NodeFacts node = healthy_node();
  node.gpu.unreadable = {2, 3};
  expect(check_gpus, node, Severity::kWarn, {"/dev/nvidia2, 3 cannot be opened"});
}
TEST(GpuLibraries, NoNccl_WarnsWhereSeveralRanksNeedIt) {
  NodeFacts node = healthy_node();
  node.gpu.nccl.clear();
  expect(check_libraries, node, Severity::kWarn, {"libnccl.so.2"});
  node.ranks = 1;
  expect(check_libraries, node, Severity::kOk, {});
}

TEST(Interface, FacingTheOthers_IsNamedWithItsMtu) {
  expect(check_interface, healthy_node(), Severity::kOk, {"eth0 (10.0.0.1, MTU 1500)"});
}
TEST(Interface, AddressOfNone_FailsListingThem) {
  NodeFacts node = healthy_node();
  node.numeric = "10.0.0.9";
  node.address = "gpu09";
  expect(check_interface, node, Severity::kFail, {"gpu09", "it has eth0 10.0.0.1"});
}
TEST(Interface, Docker0_IsRefused) {
  NodeFacts node = healthy_node();
  node.interfaces.push_back({"docker0", true, false, 1500, {"172.17.0.1"}});
  node.address = node.numeric = "172.17.0.1";
  expect(check_interface, node, Severity::kFail, {"docker0", "only containers", "eth0"});
}
TEST(Interface, Down_Fails) {
  NodeFacts node = healthy_node();
  node.interfaces[1].up = false;
  expect(check_interface, node, Severity::kFail, {"eth0", "is down"});
}
TEST(Interface, HostOnly_ByName) {
  for (const char* name : {"docker0", "virbr0", "veth12ab", "br-4f2a", "cni0", "flannel.1"}) {
    EXPECT_TRUE(is_host_only(name)) << name;
  }
  for (const char* name : {"eth0", "ib0", "bond0", "br0", "ens1f0", "enp1s0"}) {
    EXPECT_FALSE(is_host_only(name)) << name;
  }
}
TEST(Interface, OneNode_NobodyCares) {
  NodeFacts node = healthy_node(1);
  node.interfaces.clear();
  EXPECT_THAT(check_interface(node), IsEmpty());
  EXPECT_THAT(check_nccl_interface(node), IsEmpty());
  EXPECT_THAT(check_gloo_interface(node), IsEmpty());
}

NodeFacts with_interfaces(const std::vector<std::string>& names) {
  NodeFacts node = healthy_node();
  for (const std::string& name : names)
    node.interfaces.push_back({name, true, false, 1500, {"1.2.3.4"}});
  return node;
}

TEST(NcclInterface, ItsOwnRule_InfiniBandThenAllButDockerAndLo) {
  EXPECT_THAT(nccl_interfaces(with_interfaces({"docker0", "virbr0", "eth1"})),
              ElementsAre("eth0", "eth1"));
  EXPECT_THAT(nccl_interfaces(with_interfaces({"ib0", "ib1"})), ElementsAre("ib0", "ib1"));
  NodeFacts node = with_interfaces({"docker0"});
  node.interfaces[1].up = false;
  EXPECT_THAT(nccl_interfaces(node), ElementsAre("docker0"));
  node.interfaces.pop_back();
  EXPECT_THAT(nccl_interfaces(node), ElementsAre("lo"));
}
TEST(NcclInterface, IfnameRule_PrefixExactAndExcluded) {
  NodeFacts node = with_interfaces({"eth1", "eth10", "docker0"});
  const auto chosen = [&](const char* rule) {
    node.environment["NCCL_SOCKET_IFNAME"] = rule;
    return nccl_interfaces(node);
  };
  EXPECT_THAT(chosen("eth1"), ElementsAre("eth1", "eth10"));
  EXPECT_THAT(chosen("=eth1"), ElementsAre("eth1"));
  EXPECT_THAT(chosen("=eth0,eth10"), ElementsAre("eth0", "eth10"));
  EXPECT_THAT(chosen("^docker,lo"), ElementsAre("eth0", "eth1", "eth10"));
  EXPECT_THAT(chosen("^=eth0"), ElementsAre("lo", "eth1", "eth10", "docker0"));
}
TEST(NcclInterface, FromItsConfigurationFile) {
  NodeFacts node = with_interfaces({"eth1"});
  node.nccl_conf["NCCL_SOCKET_IFNAME"] = "eth1";
  EXPECT_THAT(nccl_interfaces(node), ElementsAre("eth1"));
}
TEST(NcclInterface, ThatIsNotThere_Fails) {
  NodeFacts node = healthy_node();
  node.environment["NCCL_SOCKET_IFNAME"] = "ens3";
  expect(check_nccl_interface, node, Severity::kFail,
         {"NCCL_SOCKET_IFNAME=ens3", "export NCCL_SOCKET_IFNAME=eth0"});
}
TEST(NcclInterface, BridgeOfContainers_FailsOnGpus_WarnsWithout) {
  NodeFacts node = with_interfaces({"br-4f2a"});
  expect(check_nccl_interface, node, Severity::kFail,
         {"br-4f2a", "only containers", "export NCCL_SOCKET_IFNAME=eth0"});
  node.gpu.gpus.clear();
  expect(check_nccl_interface, node, Severity::kWarn, {"br-4f2a"});
}
TEST(NcclInterface, AnotherThanTheJobs_Warns_InfiniBandDoesNot) {
  NodeFacts node = with_interfaces({"ens9"});
  std::swap(node.interfaces[1], node.interfaces[2]);
  expect(check_nccl_interface, node, Severity::kWarn, {"through ens9, while eth0 faces"});
  expect(check_nccl_interface, with_interfaces({"ib0"}), Severity::kOk, {"ib0"});
}

TEST(GlooInterface, HostNameIsLoopback_Warns) {
  NodeFacts node = healthy_node();
  node.hostname_address = "127.0.1.1";
  expect(check_gloo_interface, node, Severity::kWarn,
         {"'gpu01' is 127.0.1.1", "export GLOO_SOCKET_IFNAME=eth0"});
  node.hostname_address.clear();
  expect(check_gloo_interface, node, Severity::kWarn, {"does not resolve"});
}
TEST(GlooInterface, IfnameThatIsNotThereOrDown_Fails) {
  NodeFacts node = healthy_node();
  node.environment["GLOO_SOCKET_IFNAME"] = "ens3";
  expect(check_gloo_interface, node, Severity::kFail, {"ens3 does not exist"});
  node.interfaces.push_back({"ens3", false, false, 1500, {}});
  expect(check_gloo_interface, node, Severity::kFail, {"ens3 is down"});
  node.environment["GLOO_SOCKET_IFNAME"] = "eth0";
  expect(check_gloo_interface, node, Severity::kOk, {"eth0"});
}

TEST(RdmaCheck, States) {
  NodeFacts node = healthy_node();
  expect(check_rdma, node, Severity::kOk, {"mlx5_0 port 1 is active", "400 Gb/sec"});
  node.rdma[0].state = "INIT";
  expect(check_rdma, node, Severity::kWarn, {"subnet manager"});
  node.rdma[0].state = "DOWN";
  expect(check_rdma, node, Severity::kWarn, {"is DOWN", "NCCL_IB_HCA=^mlx5_0"});
  node.rdma.clear();
  expect(check_rdma, node, Severity::kOk, {"no device"});
}
TEST(RdmaCheck, LockedMemory_FailsWhereItIsSmall) {
  NodeFacts node = healthy_node();
  node.machine.locked_memory = 65536;
  expect(check_rdma, node, Severity::kFail, {"64 KiB", "ulimit -l unlimited"});
  node.rdma.clear();
  expect(check_rdma, node, Severity::kOk, {});
}
TEST(RdmaCheck, NoPeerMemory_Warns) {
  NodeFacts node = healthy_node();
  node.gpu.peer_memory = false;
  expect(check_rdma, node, Severity::kWarn, {"nvidia_peermem"});
}

TEST(Machine, CpuQuota_IsNamed_AndWarnsWhereItIsLessThanTheRanks) {
  NodeFacts node = healthy_node();
  node.machine.cpu_quota = 2.5;
  expect(check_cores, node, Severity::kOk, {"2.5 of 64 cores"});
  node.ranks = 4;
  expect(check_cores, node, Severity::kWarn, {"for 4 ranks", "--cpus"});
}
TEST(Machine, MemoryLimit_Warns) {
  NodeFacts node = healthy_node();
  node.machine.memory_limit = 1LL << 30;
  expect(check_memory, node, Severity::kWarn, {"1.0 GiB of 512.0 GiB", "docker --memory"});
  node.machine.memory_limit = 64LL << 30;
  expect(check_memory, node, Severity::kOk, {"64.0 GiB of 512.0 GiB"});
}
TEST(Machine, OpenFiles_FewWarn_TooFewFail) {
  NodeFacts node = healthy_node();
  node.machine.open_files = 1024;
  expect(check_open_files, node, Severity::kWarn, {"at most 1024", "ulimit -n 1048576"});
  node.machine.open_files_hard = 1024;
  expect(check_open_files, node, Severity::kWarn, {"limits.conf"});
  node.machine.open_files = 64;
  expect(check_open_files, node, Severity::kFail, {"at most 64"});
  node.machine.open_files = -1;
  expect(check_open_files, node, Severity::kOk, {"unlimited"});
}
TEST(Machine, SharedMemory_DockersDefaultWarns_NoneFails) {
  NodeFacts node = healthy_node();
  node.machine.shm_size = node.machine.shm_free = 64 << 20;
  expect(check_shared_memory, node, Severity::kWarn, {"64 MiB free of 64 MiB", "--shm-size"});
  node.machine.shm_writable = false;
  expect(check_shared_memory, node, Severity::kFail, {"is not writable"});
  node.machine.shm_size = 0;
  expect(check_shared_memory, node, Severity::kFail, {"does not exist"});
}
TEST(Machine, Disk_LittleWarns_FullFails) {
  NodeFacts node = healthy_node();
  node.machine.log_free = 500 << 20;
  expect(check_disk, node, Severity::kWarn, {"500 MiB free at /work", "--log_dir"});
  node.machine.log_free = 1 << 20;
  expect(check_disk, node, Severity::kFail, {"1 MiB"});
  node.machine.log_free = 1LL << 40;
  node.machine.log_files_free = 0;
  expect(check_disk, node, Severity::kFail, {"inodes"});
}

}  // namespace
}  // namespace fleet
