#include "launch/planning/cluster_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

struct ClusterEnvironmentTest : ::testing::Test {
  void read_cluster() {
    ClusterEnvironment cluster;
    cluster.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    };
    cluster.host_name = [this] { return host; };
    cluster.canonical_name = [this] { return canonical; };
    add_cluster_settings(cluster, &tree);
  }
  Error refusal() {
    return thrown_by([&] { read_cluster(); });
  }
  std::string at(const std::string& key) { return tree.peek(key).value_or("-"); }

  std::map<std::string, std::string> environment;
  std::string host = "train-3", canonical = "train-3.train.default.svc.cluster.local";
  ConfigTree tree;
};

TEST_F(ClusterEnvironmentTest, NothingSpecial_AddsNothing) {
  read_cluster();
  for (const char* key :
       {"ips", "host", "rank", "master", "job_id", "log_dir", "start_port", "rdzv_port"}) {
    EXPECT_EQ(at(key), "-") << key;
  }
}

struct InKubernetes : ClusterEnvironmentTest {
  InKubernetes() {
    environment = {{"JOB_COMPLETION_INDEX", "3"}, {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
    tree.set("nnodes", "4", "environment PADDLE_NNODES");
  }
};

TEST_F(InKubernetes, IndexedJob_KnowsRankAndMaster) {
  read_cluster();
  EXPECT_EQ(at("rank"), "3");
  EXPECT_EQ(at("master"), "train-0.train.default.svc.cluster.local");
}

TEST_F(InKubernetes, WithoutNnodes_PodsAreJobsOfTheirOwn) {
  tree = ConfigTree();
  read_cluster();
  EXPECT_EQ(at("rank"), "-");
}

TEST_F(InKubernetes, MasterOfTheUser_Wins) {
  tree.set("master", "10.0.0.1", "--master");
  canonical = host;
  read_cluster();
  EXPECT_EQ(at("master"), "10.0.0.1");
  EXPECT_EQ(at("rank"), "3");
}

TEST_F(InKubernetes, PodWithoutADomain_SaysWhatToDo) {
  canonical = host;
  EXPECT_THAT(refusal(), IsUsageError("environment JOB_COMPLETION_INDEX"));
}

TEST_F(InKubernetes, OutsideOfIt_TheIndexMeansNothing) {
  environment.erase("KUBERNETES_SERVICE_HOST");
  read_cluster();
  EXPECT_EQ(at("rank"), "-");
}

}  // namespace
}  // namespace fleet
