#include "launch/tools/doctor/nccl_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/control/launch/tools/doctor/facts.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

NodeFacts with(const std::map<std::string, std::string>& environment) {
  NodeFacts node = healthy_node();
  node.environment = environment;
  return node;
}

TEST(NcclSettings, Known_AreThoseOf2_28) {
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE",
                           "NCCL_DEBUG", "NCCL_NET_GDR_LEVEL", "NCCL_LL128_C2C"}) {
    EXPECT_THAT(nccl_variables(), Contains(name));
  }
  EXPECT_THAT(nccl_variables(), Not(Contains("NCCL_IB_CUDA_SUPPORT")));
}

TEST(NcclSettings, Misspelt_NearestIsNamed) {
  EXPECT_THAT(said(check_spelling(with({{"NCCL_SOCKET_IFNAMES", "eth0"}}))),
              HasSubstr("NCCL_SOCKET_IFNAMES is not a variable of NCCL 2.28 -> did you mean "
                        "NCCL_SOCKET_IFNAME?"));
  EXPECT_THAT(said(check_spelling(with({{"NCCL_IB_DISBALE", "1"}}))),
              HasSubstr("did you mean NCCL_IB_DISABLE?"));
  EXPECT_THAT(said(check_spelling(with({{"NCCL_ZZZZZZZZZZZZ", "1"}}))),
              HasSubstr("unless a plugin reads it"));
}

TEST(NcclSettings, OldNames_SayWhatTookTheirPlace) {
  EXPECT_THAT(said(check_spelling(with({{"NCCL_IB_CUDA_SUPPORT", "1"}}))),
              HasSubstr("use NCCL_NET_GDR_LEVEL instead: =LOC for the old 0, =SYS for the old 1"));
  EXPECT_THAT(said(check_spelling(with({{"NCCL_BLOCKING_WAIT", "1"}}))),
              HasSubstr("TORCH_NCCL_BLOCKING_WAIT"));
}

TEST(NcclSettings, OfImagesAndPlugins_AreLeftAlone) {
  EXPECT_THAT(check_spelling(with({{"NCCL_VERSION", "2.28.9-1"},
                                   {"NCCL_ROOT", "/usr"},
                                   {"NCCL_FASTRAK_NUM_FLOWS", "2"},
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
  EXPECT_THAT(said(check_values(with({{"NCCL_IB_DISABLE", "true"}}))),
              HasSubstr("NCCL_IB_DISABLE=true is not a number: NCCL ignores it"));
  EXPECT_THAT(said(check_values(with({{"NCCL_DEBUG", "DEBUG"}}))),
              HasSubstr("is not a valid value -> write one of VERSION, WARN, INFO"));
  EXPECT_THAT(said(check_values(with({{"NCCL_SOCKET_FAMILY", "ipv6"}}))), HasSubstr("AF_INET6"));
  EXPECT_THAT(check_values(with({{"NCCL_IB_DISABLE", "1"}, {"NCCL_DEBUG", "warn"}})), IsEmpty());
}

TEST(NcclSettings, DebuggingLeftOn_Warns) {
  EXPECT_THAT(said(check_sense(with({{"NCCL_DEBUG", "info"}}))), HasSubstr("is for debugging"));
  EXPECT_THAT(said(check_sense(with({{"NCCL_DEBUG_SUBSYS", "NET"}}))), HasSubstr("no effect"));
  EXPECT_THAT(said(check_sense(with({{"NCCL_ALGO", "Ring"}}))),
              HasSubstr("overrides NCCL's choice"));
  EXPECT_THAT(said(check_sense(with({{"CUDA_LAUNCH_BLOCKING", "1"}}))),
              HasSubstr("kernel launch wait"));
}

TEST(NcclSettings, RdmaSwitchedOffWhereItIsThere_Warns) {
  NodeFacts node = with({{"NCCL_IB_DISABLE", "1"}});
  EXPECT_THAT(said(check_sense(node)), HasSubstr("disables RDMA on this node (mlx5_0)"));
  node.rdma.clear();
  EXPECT_THAT(check_sense(node), IsEmpty());
  EXPECT_THAT(said(check_sense(with({{"NCCL_NET", "Socket"}}))), HasSubstr("NCCL_NET=Socket"));
}

TEST(NcclSettings, Contradictions_Warn) {
  EXPECT_THAT(said(check_sense(with({{"NCCL_IB_DISABLE", "1"}, {"NCCL_IB_HCA", "mlx5_0"}}))),
              HasSubstr("NCCL_IB_DISABLE=1 and NCCL_IB_HCA=mlx5_0 contradict"));
  EXPECT_THAT(said(check_sense(with({{"NCCL_P2P_DISABLE", "1"}, {"NCCL_P2P_LEVEL", "NVL"}}))),
              HasSubstr("NCCL_P2P_LEVEL=NVL contradict"));
  EXPECT_THAT(said(check_sense(with({{"NCCL_MIN_CTAS", "32"}, {"NCCL_MAX_CTAS", "4"}}))),
              HasSubstr("NCCL_MIN_CTAS=32 and NCCL_MAX_CTAS=4 contradict"));
  EXPECT_THAT(check_sense(with({{"NCCL_MIN_CTAS", "4"}, {"NCCL_MAX_CTAS", "32"}})), IsEmpty());
}

TEST(NcclSettings, NoPeerAccess_WarnsWithSeveralGpus) {
  NodeFacts node = with({{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}});
  EXPECT_THAT(said(check_sense(node)), HasSubstr("host memory, and NCCL_SHM_DISABLE"));
  node.gpu.gpus.resize(1);
  EXPECT_THAT(check_sense(node), IsEmpty());
}

TEST(NcclSettings, HcaThatIsNotThere_Fails) {
  EXPECT_THAT(said(check_sense(with({{"NCCL_IB_HCA", "=mlx5_0:1,mlx5_7"}}))),
              HasSubstr("[fail] NCCL_IB_HCA names 'mlx5_7', which this node does not have -> its "
                        "devices are mlx5_0"));
  EXPECT_THAT(check_sense(with({{"NCCL_IB_HCA", "mlx5"}})), IsEmpty());
  EXPECT_THAT(check_sense(with({{"NCCL_IB_HCA", "^mlx5_7"}})), IsEmpty());
  NodeFacts node = with({{"NCCL_NET", "IB"}});
  node.rdma.clear();
  EXPECT_THAT(said(check_sense(node)), HasSubstr("[fail] NCCL_NET=IB"));
}

TEST(NcclSettings, Explained) {
  EXPECT_THAT(said(explain_settings(with({{"NCCL_P2P_DISABLE", "0"}}))),
              HasSubstr("NCCL_P2P_DISABLE=0 (1: GPUs of a node do not copy"));
  EXPECT_THAT(explain_settings(with({{"NCCL_TUNER_PLUGIN", "x"}})), IsEmpty());
}

}  // namespace
}  // namespace fleet
