// Nodes that options of other launchers name or count.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "tests/errors.h"

namespace fleet {
namespace {

std::string host_file(const std::string& text) {
  const std::string path = ::testing::TempDir() + "compat_host_file";
  std::ofstream(path) << text;
  return path;
}

TEST(CompatHostFile, UserBeforeTheHost_LogsIn) {
  const std::string path = host_file("alice@10.0.0.2 slots=2\nalice@10.0.0.3 slots=2\n");
  const Settings settings = parse_arguments({"--hostfile", path, "-np", "4", "p"}).settings;
  EXPECT_EQ(settings.text("via_options"), "-l alice");
  EXPECT_EQ(settings.texts("ips"), (std::vector<std::string>{"10.0.0.2:2", "10.0.0.3:2"}));
}

TEST(CompatHostFile, SeveralUsers_AreRefused) {
  const std::string path = host_file("alice@10.0.0.2 slots=2\n10.0.0.3 slots=2\n");
  EXPECT_THAT(thrown_by([&] {
                parse_arguments({"--hostfile", path, "-np", "4", "p"});
              }),
              IsUsageError());
}

// As in the tools/slurm_train.sh of OpenMMLab's repositories.
TEST(CompatNodes, SrunsTotalAndItsCountForANode_GiveTheirNumber) {
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
  const Settings settings =
      parse_arguments({"--gres=gpu:8", "--ntasks=16", "--ntasks-per-node=8", "p"}).settings;
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_JOB_NODELIST");
  EXPECT_EQ(settings.text("nnodes"), "2");
  EXPECT_EQ(settings.integer("nproc_per_node"), 8);
}

}  // namespace
}  // namespace fleet
