#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/tools/doctor/checks.h"
#include "tests/control/launch/tools/doctor/facts.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

NodeFacts with(const std::map<std::string, std::string>& environment) {
  NodeFacts node = healthy_node();
  node.environment = environment;
  return node;
}

TEST(NcclSettings, Known_AreLeftAlone) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE",
                           "NCCL_DEBUG", "NCCL_NET_GDR_LEVEL", "NCCL_LL128_C2C"}) {
    EXPECT_THAT(check_spelling(with({{name, "1"}})), IsEmpty());
  }
}

TEST(NcclSettings, Misspelt_NearestIsNamed) {
  EXPECT_THAT(said(check_spelling(with({{"NCCL_SOCKET_IFNAMES", "eth0"}}))),
              HasSubstr("NCCL_SOCKET_IFNAMES is not a variable of NCCL -> did you mean "
                        "NCCL_SOCKET_IFNAME?"));
  EXPECT_THAT(check_spelling(with({{"NCCL_IB_DISBALE", "1"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_spelling(with({{"NCCL_AGLO", "Ring"}})), OneFinding(Severity::kWarn));
}

TEST(NcclSettings, NamesThatPyTorchHasChanged_SayTheNewOne) {
  EXPECT_THAT(said(check_spelling(with({{"NCCL_BLOCKING_WAIT", "1"}}))),
              HasSubstr("PyTorch reads TORCH_NCCL_BLOCKING_WAIT instead"));
}

TEST(NcclSettings, OfImagesPluginsAndOtherReleases_AreLeftAlone) {
  EXPECT_THAT(check_spelling(with({{"NCCL_VERSION", "2.28.9-1"},
                                   {"NCCL_ROOT", "/usr"},
                                   {"NCCL_FASTRAK_NUM_FLOWS", "2"},
                                   {"NCCL_HOST_IP", "10.0.0.1"},
                                   {"NCCL_PORT", "6070"},
                                   {"NCCL_OFI_DISABLE", "1"},
                                   {"NCCL_ZZZZZZZZZZZZ", "1"},
                                   {"NCCL_DEBUG", "WARN"},
                                   {"OMP_NUM_THREADS", "2"}})),
              IsEmpty());
}

TEST(NcclSettings, ConfigurationFile_CountsToo_TheEnvironmentWins) {
  NodeFacts node = with({{"NCCL_DEBUG", "WARN"}});
  node.nccl_conf = {{"NCCL_DEBUG", "INFO"}, {"NCCL_IBB_HCA", "mlx5"}};
  EXPECT_THAT(said(check_spelling(node)), HasSubstr("NCCL_IBB_HCA"));
  EXPECT_THAT(check_sense(node), IsEmpty());
}

TEST(NcclSettings, ValuesThatNcclIgnores_Warn) {
  EXPECT_THAT(check_values(with({{"NCCL_IB_DISABLE", "true"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_values(with({{"NCCL_DEBUG", "DEBUG"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_values(with({{"NCCL_SOCKET_FAMILY", "ipv6"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_values(with({{"NCCL_IB_DISABLE", "1"}, {"NCCL_DEBUG", "warn"}})), IsEmpty());
}

TEST(NcclSettings, DebuggingLeftOn_Warns) {
  EXPECT_THAT(check_sense(with({{"NCCL_DEBUG", "info"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_sense(with({{"NCCL_DEBUG_SUBSYS", "NET"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_sense(with({{"NCCL_ALGO", "Ring"}})), OneFinding(Severity::kWarn));
  EXPECT_THAT(check_sense(with({{"CUDA_LAUNCH_BLOCKING", "1"}})), OneFinding(Severity::kWarn));
}

TEST(NcclSettings, RdmaSwitchedOffWhereItIsThere_Warns) {
  NodeFacts node = with({{"NCCL_IB_DISABLE", "1"}});
  EXPECT_THAT(check_sense(node), OneFinding(Severity::kWarn));
  node.rdma.clear();
  EXPECT_THAT(check_sense(node), IsEmpty());
  EXPECT_THAT(check_sense(with({{"NCCL_NET", "Socket"}})), OneFinding(Severity::kWarn));
}

TEST(NcclSettings, Contradictions_Warn) {
  EXPECT_THAT(said(check_sense(with({{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5_0"}}))),
              HasSubstr("NCCL_IB_DISABLE=1 and NCCL_IB_HCA=mlx5_0 contradict"));
  EXPECT_EQ(check_sense(with({{"NCCL_P2P_DISABLE", "1"}, {"NCCL_P2P_LEVEL", "NVL"}})).size(), 2u);
  EXPECT_THAT(check_sense(with({{"NCCL_MIN_CTAS", "32"}, {"NCCL_MAX_CTAS", "4"}})),
              OneFinding(Severity::kWarn));
  EXPECT_THAT(check_sense(with({{"NCCL_MIN_CTAS", "4"}, {"NCCL_MAX_CTAS", "32"}})), IsEmpty());
}

TEST(NcclSettings, NoPeerAccess_WarnsWithSeveralGpus) {
  NodeFacts node = with({{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}});
  EXPECT_THAT(check_sense(node), OneFinding(Severity::kWarn));
  node.gpu.gpus.resize(1);
  EXPECT_THAT(check_sense(node), IsEmpty());
}

TEST(NcclSettings, HcaThatIsNotThere_Fails) {
  EXPECT_THAT(
      said(check_sense(with({{"NCCL_IB_HCA", "=mlx5_0:1,mlx5_7"}}))),
      AllOf(HasSubstr("[fail] NCCL_IB_HCA names 'mlx5_7'"), HasSubstr("its devices are mlx5_0")));
  EXPECT_THAT(check_sense(with({{"NCCL_IB_HCA", "mlx5"}})), IsEmpty());
  EXPECT_THAT(check_sense(with({{"NCCL_IB_HCA", "^mlx5_7"}})), IsEmpty());
  NodeFacts node = with({{"NCCL_NET", "IB"}});
  node.rdma.clear();
  EXPECT_THAT(check_sense(node), OneFinding(Severity::kFail));
}

}  // namespace
}  // namespace fleet
