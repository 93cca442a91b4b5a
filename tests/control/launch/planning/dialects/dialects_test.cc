#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/environment.h"
#include "launch/planning/options.h"
#include "tests/control/launch/sample_job.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Rank 3, local rank 1 of node 1.
Variables of(const Dialect& dialect, bool gpu = false) {
  RankContext context;
  context.job_id = "night";
  context.log_dir = "log";
  context.service_port = 4242;
  context.interface = "eth1";
  return dialect.variables(sample_job(gpu), 1, context);
}

Settings settings_with(const std::string& dialect) {
  ConfigTree tree;
  if (!dialect.empty()) tree.set("dialect", dialect, "--dialect");
  return tree.validate(launch_schema());
}

Error dialect_refusal(const std::string& dialect, bool roles = false, bool trains = false) {
  return thrown_by([&] {
    const auto names = read_dialects(settings_with(dialect), roles);
    if (trains) check_dialects_of_worker(names);
  });
}

TEST(ReadDialects, NotGiven_PaddleAndTorch) {
  EXPECT_THAT(read_dialects(settings_with(""), false), ElementsAre("paddle", "torch"));
}

TEST(ReadDialects, Given_InTheirOwnOrder) {
  EXPECT_THAT(read_dialects(settings_with("jax, paddle"), false), ElementsAre("paddle", "jax"));
}

TEST(ReadDialects, UnknownName_NamesTheNearest) {
  EXPECT_THAT(dialect_refusal("torhc"), IsUsageError("--dialect"));
  EXPECT_THAT(dialect_refusal("klingon"), IsUsageError("--dialect"));
}

TEST(ReadDialects, JobFile_WantsPaddle) {
  EXPECT_THAT(dialect_refusal("torch", false, true), IsUsageError("--dialect"));
  EXPECT_NO_THROW(check_dialects_of_worker(read_dialects(settings_with("jax, paddle"), false)));
}

TEST(ReadDialects, ParameterServers_ArePaddles) {
  EXPECT_THAT(read_dialects(settings_with(""), true), ElementsAre("paddle"));
  EXPECT_THAT(dialect_refusal("paddle,jax", true), IsUsageError("--dialect"));
}

TEST(RankEnvironment, EveryDialectAtOnce_EachNameOnce) {
  RankContext context;
  context.log_dir = "log";
  for (const Dialect* dialect : all_dialects()) context.dialects.push_back(dialect->name);
  std::set<std::string> names;
  for (const auto& [name, value] : rank_environment(sample_job(true), 1, context)) {
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(RankEnvironment, OneDialect_NothingOfOthers) {
  RankContext context;
  context.dialects = {"torch"};
  for (const auto& [name, value] : rank_environment(sample_job(true), 1, context)) {
    EXPECT_FALSE(name.starts_with("PADDLE_")) << name;
  }
  EXPECT_EQ(table_environment(sample_job(true), 1, context).front().first, "RANK");
}

TEST(OpenMpiDialect, HasItsNames) {
  EXPECT_THAT(of(dialect_named("openmpi")),
              UnorderedElementsAre(
                  Pair("OMPI_COMM_WORLD_RANK", "3"), Pair("OMPI_COMM_WORLD_SIZE", "4"),
                  Pair("OMPI_COMM_WORLD_LOCAL_RANK", "1"), Pair("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
                  Pair("OMPI_COMM_WORLD_NODE_RANK", "1"), Pair("OMPI_UNIVERSE_SIZE", "4")));
}

TEST(MlxDialect, HasItsNamesAndItsHostfile) {
  EXPECT_THAT(of(dialect_named("mlx")),
              UnorderedElementsAre(Pair("MLX_RANK", "3"), Pair("MLX_WORLD_SIZE", "4"),
                                   Pair("MLX_HOSTFILE", ::testing::EndsWith("/log/mlx_hosts.json")),
                                   Pair("NCCL_HOST_IP", "10.0.0.1"), Pair("NCCL_PORT", "6070")));
  RankContext context;
  context.log_dir = ::testing::TempDir();
  dialect_named("mlx").write_files(sample_job(false), context);
  EXPECT_EQ(nlohmann::json::parse(read_file(context.log_dir + "/mlx_hosts.json")),
            nlohmann::json::parse(
                R"([["10.0.0.1:6070"], ["10.0.0.1:6071"], ["10.0.0.2:6070"], ["10.0.0.2:6071"]])"));
}

TEST(HorovodDialect, UnequalNodes_CountsThoseThatHaveTheLocalRank) {
  Assignment assignment = sample_job(false);
  auto world = std::make_shared<World>(*assignment.world);
  world->mutable_nodes(0)->set_local_world_size(1);
  assignment.world = world;
  const auto cross = [&](int local_rank) {  // rank/size
    RankContext context;
    context.dialects = {"horovod"};
    std::map<std::string, std::string> all;
    for (const auto& [name, value] : rank_environment(assignment, local_rank, context)) {
      all[name] = value;
    }
    return all["HOROVOD_CROSS_RANK"] + "/" + all["HOROVOD_CROSS_SIZE"];
  };
  EXPECT_EQ(cross(0), "1/2");
  EXPECT_EQ(cross(1), "0/1");
}

}  // namespace
}  // namespace fleet
