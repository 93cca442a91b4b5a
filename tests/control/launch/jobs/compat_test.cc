// Command lines of other launchers, through the real fleetrun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {
namespace {

size_t times(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(CompatJob, MpirunsLine_StartsItsRanks_WithItsVariables) {
  const JobFolder job;
  Fleetrun fleetrun(job, "run",
                    {"--allow-run-as-root", "-np", "2", "-H", "localhost:2", "-bind-to", "none",
                     "-x", "FIRST=a b,c", "-x", "PATH", "--mca", "btl", "^openib", "sh", "-c",
                     "echo \"$RANK of $WORLD_SIZE $FIRST\" >rank.$RANK"});
  EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
  EXPECT_EQ(job.read("rank.0"), "0 of 2 a b,c\n");
  EXPECT_EQ(job.read("rank.1"), "1 of 2 a b,c\n");
  const std::string output = fleetrun.output();
  EXPECT_EQ(times(output, "options without effect:"), 1u) << output;
}

TEST(CompatJob, LineThatIsRefused_StartsNothing_AndItsCorrectionRuns) {
  const JobFolder job;
  Fleetrun refused(job, "refused", {"-np", "2", "--log-levl=ERROR", "sh", "-c", ": >rank.$RANK"});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_EQ(job.read("refused.out"),
            "fleetrun: unknown option '--log-levl'; did you mean '--log_level'?\n"
            "corrected: fleetrun --nproc_per_node=2 --log_level=ERROR sh -c ': >rank.$RANK'\n");
  Fleetrun corrected(
      job, "corrected",
      {"--nproc_per_node=2", "--log_level=ERROR", "sh", "-c", "echo started >rank.$RANK"});
  EXPECT_EQ(corrected.wait(), 0);
  EXPECT_EQ(job.read("rank.0") + job.read("rank.1"), "started\nstarted\n");
}

TEST(CompatJob, ExportedVariables_ReachTheRanksOfThisNode) {
  const JobFolder job;
  Fleetrun fleetrun(job, "run",
                    {"--export=FIRST=1,SECOND=two", "sh", "-c", "echo $FIRST $SECOND >got"});
  EXPECT_EQ(fleetrun.wait(), 0) << fleetrun.output();
  EXPECT_EQ(job.read("got"), "1 two\n");
}

}  // namespace
}  // namespace fleet
