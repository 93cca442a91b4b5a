#include "launch/planning/torchrun/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "launch/planning/options.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

using Values = std::map<std::string, std::string>;

struct Translation {
  Settings settings;
  std::vector<IgnoredFlag> ignored;
};

// Of a machine with 6 cores.
Translation translate(const Values& given, const Values& environment = {}, int gpus = 0) {
  const TorchrunMachine machine = {
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      [=] { return gpus; }, [] { return 6; },
      [](const std::string& address) { return address == "here" || address == "127.0.0.1"; }};
  ConfigTree tree;
  if (given.contains("compat")) add_torchrun_defaults(&tree);
  add_torchrun_environment(machine, &tree);
  for (const auto& [key, value] : given) tree.set(key, value, "--" + key);
  std::vector<IgnoredFlag> ignored = translate_torchrun(machine, &tree);
  return {tree.validate(launch_schema()), std::move(ignored)};
}

Error translation_refusal(const Values& given, const Values& environment = {}) {
  return thrown_by([&] { translate(given, environment); });
}

TEST(TorchrunNproc, NumbersStay) {
  EXPECT_EQ(translate({{"nproc_per_node", "3"}}).settings.integer("nproc_per_node"), 3);
}

TEST(TorchrunNproc, Cpu_IsARankACore) {
  EXPECT_EQ(translate({{"nproc_per_node", "cpu"}}, {}, 4).settings.integer("nproc_per_node"), 6);
}

TEST(TorchrunNproc, Gpu_IsARankAGpu) {
  EXPECT_FALSE(translate({{"nproc_per_node", "gpu"}}, {}, 4).settings.given("nproc_per_node"));
  EXPECT_FALSE(translate({{"compat", "torchrun"}, {"nproc_per_node", "gpu"}}, {}, 4)
                   .settings.given("nproc_per_node"));
  EXPECT_THAT(translation_refusal({{"nproc_per_node", "gpu"}}),
              IsUsageError("--nproc_per_node gpu"));
}

TEST(TorchrunNproc, Auto_IsWhatThereIs) {
  EXPECT_FALSE(translate({{"nproc_per_node", "auto"}}, {}, 2).settings.given("nproc_per_node"));
  EXPECT_EQ(translate({{"nproc_per_node", "auto"}}).settings.integer("nproc_per_node"), 6);
}

TEST(TorchrunNproc, WithVia_EachNodeCountsItsOwnGpus) {
  EXPECT_FALSE(
      translate({{"nproc_per_node", "gpu"}, {"via", "ssh"}}).settings.given("nproc_per_node"));
  EXPECT_THAT(translation_refusal({{"nproc_per_node", "cpu"}, {"via", "ssh"}}),
              IsUsageError("--nproc_per_node cpu"));
}

TEST(TorchrunNproc, Xpu_IsRefusedByName) {
  EXPECT_THAT(translation_refusal({{"nproc_per_node", "xpu"}}),
              IsUsageError("--nproc_per_node xpu"));
}

TEST(TorchrunEndpoint, OfSeveralNodes_IsTheMaster) {
  const auto master = [](const std::string& endpoint) {
    return translate({{"nnodes", "2"}, {"rdzv_endpoint", endpoint}}).settings.text("master");
  };
  EXPECT_EQ(master("node1:1234"), "node1:1234");
  EXPECT_EQ(master("node1"), "node1:29400");
  EXPECT_EQ(master("[::1]:7"), "[::1]:7");
  EXPECT_EQ(master("[::1]"), "[::1]:29400");
}

TEST(TorchrunEndpoint, PortZero_IsForASingleNode) {
  EXPECT_THAT(translation_refusal({{"nnodes", "2"}, {"rdzv_endpoint", "localhost:0"}}),
              IsUsageError("--rdzv_endpoint localhost:0"));
  EXPECT_FALSE(translate({{"rdzv_endpoint", "localhost:0"}}).settings.given("master"));
}

TEST(TorchrunEndpoint, StaticOfASingleNode_IsMasterPort) {
  EXPECT_EQ(translate({{"rdzv_endpoint", "localhost:5972"}}).settings.integer("master_port"), 5972);
  EXPECT_FALSE(translate({{"rdzv_endpoint", "localhost:5972"}, {"rdzv_backend", "c10d"}})
                   .settings.given("master_port"));
}

TEST(TorchrunEndpoint, MasterAddrAndPort_MeanTheSame) {
  const Settings both =
      translate({{"nnodes", "2"}, {"master_addr", "node1"}, {"master_port", "1234"}}).settings;
  EXPECT_EQ(both.text("master"), "node1:1234");
  EXPECT_EQ(both.origin("master"), "--master_addr");
  const Values ipv6 = {{"nnodes", "2"}, {"master_addr", "fd00::1"}, {"master_port", "1234"}};
  EXPECT_EQ(translate(ipv6).settings.text("master"), "[fd00::1]:1234");
  EXPECT_EQ(translate({{"nnodes", "2"}, {"master_addr", "node1"}}).settings.text("master"),
            "node1:29500");
  EXPECT_EQ(translate({{"nnodes", "2"}, {"master_port", "1234"}}).settings.text("master"),
            "127.0.0.1:1234");
}

TEST(TorchrunEndpoint, ContradictingMasters_AreRefused) {
  EXPECT_THAT(
      translation_refusal({{"nnodes", "2"}, {"master", "node2:1"}, {"rdzv_endpoint", "node1:1"}}),
      IsUsageError("--rdzv_endpoint node1:1"));
  EXPECT_NO_THROW(
      translate({{"nnodes", "2"}, {"master", "node1:1"}, {"rdzv_endpoint", "node1:1"}}));
}

TEST(TorchrunEndpoint, Nonsense_IsRefused) {
  for (const char* endpoint : {"node1:port", "node1:99999", ":29400", "tcp://node1:29400"}) {
    EXPECT_THAT(translation_refusal({{"nnodes", "2"}, {"rdzv_endpoint", endpoint}}), IsUsageError())
        << endpoint;
  }
}

TEST(TorchrunLocalAddr, OfThisHost_IsTheHost) {
  const Settings settings = translate({{"local_addr", "here"}}).settings;
  EXPECT_EQ(settings.text("host"), "here");
  EXPECT_FALSE(settings.given("local_addr"));
  EXPECT_EQ(translate({}, {{"PET_LOCAL_ADDR", "here"}}).settings.origin("host"),
            "environment PET_LOCAL_ADDR");
  EXPECT_THAT(translation_refusal({{"local_addr", "here"}, {"host", "127.0.0.1"}}),
              IsUsageError("--local_addr here"));
}

// Of torch 2.15, RendezvousStoreInfo.build() and StaticTCPRendezvous: only node 0 of a c10d
// rendezvous tells the ranks its address.
TEST(TorchrunLocalAddr, OfAnotherHost_CountsOnNodeZeroOfC10d) {
  const auto of = [](Values given) {
    given["local_addr"] = "gateway";
    return translate(given);
  };
  const auto kept = [](const Translation& translation) {
    EXPECT_FALSE(translation.settings.given("host"));
    return translation.settings.text("local_addr") == "gateway" && translation.ignored.empty();
  };
  const auto named = [](const Translation& translation) {
    EXPECT_FALSE(translation.settings.given("host"));
    EXPECT_FALSE(translation.settings.given("local_addr"));
    return translation.ignored.size() == 1 && translation.ignored[0].flag == "--local_addr";
  };
  EXPECT_TRUE(kept(of({})));  // a single node is c10d's unless a port is given
  EXPECT_TRUE(named(of({{"master_port", "7"}})));
  const Values c10d = {{"nnodes", "2"}, {"rdzv_backend", "c10d"}, {"rdzv_endpoint", "here:1"}};
  EXPECT_TRUE(kept(of(c10d)));
  Values second = c10d;
  second["rank"] = "1";
  EXPECT_TRUE(named(of(second)));
  second.erase("rank");
  second["rdzv_endpoint"] = "there:1";
  EXPECT_TRUE(named(of(second)));
  EXPECT_TRUE(named(of({{"nnodes", "2"}, {"master_addr", "here"}})));  // static
}

TEST(TorchrunStandalone, OtherPlacesDoNotCount) {
  const Settings settings = translate({{"standalone", "true"},
                                       {"rdzv_endpoint", "node1:29400"},
                                       {"rdzv_backend", "zeus"},
                                       {"master_port", "1"}})
                                .settings;
  EXPECT_FALSE(settings.given("master"));
  EXPECT_FALSE(settings.given("master_port"));
  EXPECT_THAT(translation_refusal({{"standalone", "true"}, {"nnodes", "2"}}),
              IsUsageError("--standalone"));
}

TEST(TorchrunBackend, Etcd_IsNotNeeded) {
  const Translation etcd =
      translate({{"nnodes", "2"}, {"rdzv_backend", "etcd-v2"}, {"rdzv_endpoint", "etcd:2379"}});
  ASSERT_EQ(etcd.ignored.size(), 1u);
  EXPECT_THAT(ignored_flags_text(etcd.ignored), HasSubstr("built in"));
  EXPECT_FALSE(etcd.settings.given("master"));  // it is not the address of a node
  EXPECT_THAT(translation_refusal({{"rdzv_backend", "zeus"}}), IsUsageError("--rdzv_backend"));
}

TEST(TorchrunConf, Timeouts_AreOurs) {
  const Translation conf =
      translate({{"nnodes", "1:2"},
                 {"rdzv_conf",
                  "join_timeout=1800, last_call_timeout=7,keep_alive_interval=2,read_timeout=9"}});
  EXPECT_EQ(conf.settings.number("rdzv_timeout"), 1800);
  EXPECT_EQ(conf.settings.number("elastic_timeout"), 7);
  EXPECT_EQ(conf.settings.number("heartbeat_timeout"), 6);
  ASSERT_EQ(conf.ignored.size(), 1u);
  EXPECT_EQ(conf.ignored[0].flag, "--rdzv_conf read_timeout");
}

TEST(TorchrunConf, OwnOption_Wins) {
  EXPECT_EQ(translate({{"rdzv_conf", "timeout=5"}, {"rdzv_timeout", "9"}})
                .settings.number("rdzv_timeout"),
            9);
}

TEST(TorchrunConf, IsHost_IsNodeZero) {
  EXPECT_EQ(translate({{"nnodes", "2"}, {"rdzv_conf", "is_host=True"}}).settings.integer("rank"),
            0);
  EXPECT_FALSE(translate({{"nnodes", "2"}, {"rdzv_conf", "is_host=0"}}).settings.given("rank"));
  EXPECT_THAT(translation_refusal({{"rdzv_conf", "is_host=perhaps"}}),
              IsUsageError("--rdzv_conf is_host"));
}

TEST(TorchrunConf, Nonsense_IsRefused) {
  for (const char* conf : {"join_timeout", "=3", "join_timeout=", "join_timeout=soon"}) {
    EXPECT_THAT(translation_refusal({{"rdzv_conf", conf}}), IsUsageError()) << conf;
  }
}

TEST(TorchrunEnvironment, Variables_AreReadBelowTheOptions) {
  const Settings settings = translate({{"nnodes", "2"}, {"master_addr", "node1"}},
                                      {{"PET_NNODES", "4"},
                                       {"PET_NPROC_PER_NODE", "2"},
                                       {"PET_RDZV_ID", "night"},
                                       {"PET_NODE_RANK", "1"},
                                       {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}})
                                .settings;
  EXPECT_EQ(settings.text("nnodes"), "2");
  EXPECT_EQ(settings.integer("nproc_per_node"), 2);
  EXPECT_EQ(settings.text("job_id"), "night");
  EXPECT_EQ(settings.integer("rank"), 1);
  EXPECT_EQ(settings.number("grace"), 7);
  EXPECT_EQ(settings.origin("job_id"), "environment PET_RDZV_ID");
}

TEST(TorchrunEnvironment, Switches_AreNumbers) {
  EXPECT_TRUE(translate({}, {{"PET_MODULE", "2"}}).settings.boolean("module"));
  EXPECT_FALSE(translate({}, {{"PET_MODULE", "0"}}).settings.boolean("module"));
  EXPECT_TRUE(translate({{"module", "true"}}, {{"PET_MODULE", "0"}}).settings.boolean("module"));
  EXPECT_THAT(translation_refusal({}, {{"PET_MODULE", "true"}}),
              IsUsageError("environment PET_MODULE"));
}

TEST(TorchrunEnvironment, VariablesWithoutMeaning_AreNamed) {
  const Translation ignored = translate({}, {{"PET_MONITOR_INTERVAL", "5"}});
  ASSERT_EQ(ignored.ignored.size(), 1u);
  EXPECT_EQ(ignored.ignored[0].flag, "PET_MONITOR_INTERVAL");
}

TEST(TorchrunDefaults, AreTorchruns) {
  const Settings settings = translate({{"compat", "torchrun"}, {"nnodes", "1:4"}}).settings;
  EXPECT_TRUE(is_torchrun_mode(settings));
  EXPECT_EQ(settings.integer("nproc_per_node"), 1);
  EXPECT_EQ(settings.integer("max_restart"), 0);
  EXPECT_EQ(settings.text("job_id"), "none");
  EXPECT_EQ(settings.number("grace"), 30);
  EXPECT_EQ(translate({{"compat", "torchrun"}}, {{"PET_NPROC_PER_NODE", "4"}})
                .settings.integer("nproc_per_node"),
            4);
}

TEST(TorchrunDefaults, ListedNodes_AreNotCounted) {
  const Settings settings = translate({{"compat", "torchrun"}, {"ips", "a:8,b:8"}}).settings;
  EXPECT_FALSE(settings.given("nnodes"));
  EXPECT_FALSE(settings.given("nproc_per_node"));
}

TEST(TorchrunProgram, ModuleAndNoPython_ContradictEachOther) {
  EXPECT_THAT(translation_refusal({{"module", "true"}, {"no_python", "true"}}),
              IsUsageError("--module"));
}

}  // namespace
}  // namespace fleet
