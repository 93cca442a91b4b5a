#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/tools/dry_run/dry_run.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ViaPlan via_sample(size_t nodes) {
  ViaPlan plan;
  plan.job_id = "night";
  plan.via = "ssh";
  plan.program = {"train.py", "--name", "a b"};
  plan.environment = {{"FLEET_JOB_SECRET", "t0p"}, {"NCCL_DEBUG", "WARN"}};
  plan.notes = {"something is assumed"};
  for (size_t k = 0; k < nodes; ++k) {
    const std::string name = "n" + std::to_string(k);
    plan.nodes.push_back({name,
                          "ssh to " + name,
                          "/data",
                          "log/" + name,
                          "all",
                          {k == 0, {}, k == 0 ? std::vector<int>{0, 1} : std::vector<int>{}},
                          {"ssh", name},
                          {"fleetrun", "--", "train.py", "--name", "a b"}});
  }
  return plan;
}

TEST(ViaTable, SaysWhatRunsWhere) {
  std::ostringstream out;
  write_via_table(via_sample(2), out);
  EXPECT_THAT(
      out.str(),
      AllOf(AllOf(HasSubstr("job 'night' on 2 nodes"), HasSubstr("--via=ssh")),
            HasSubstr("0     n0       ssh to n0  ranks 0-1                all   /data   log/n0"),
            HasSubstr("node 1 (n1) runs\n  fleetrun -- train.py --name 'a b'\n")));
  EXPECT_EQ(out.str().find("t0p"), std::string::npos);
}

TEST(ViaTable, ManyNodes_ShowOneCommand) {
  std::ostringstream out;
  write_via_table(via_sample(20), out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("node 0 (n0) runs"), Not(HasSubstr("node 1 (n1) runs"))));
}

TEST(ViaJson, HasEverything) {
  std::ostringstream out;
  write_via_json(via_sample(20), out);
  const auto all = nlohmann::json::parse(out.str());
  EXPECT_EQ(all["via"], "ssh");
  EXPECT_EQ(all["environment"]["FLEET_JOB_SECRET"], "******");
  ASSERT_EQ(all["nodes"].size(), 20u);
  EXPECT_EQ(all["nodes"][0]["ranks"], (std::vector<int>{0, 1}));
  EXPECT_EQ(all["nodes"][1]["ranks"], nullptr);
  EXPECT_EQ(all["nodes"][19]["command"].size(), 5u);
}

}  // namespace
}  // namespace fleet
