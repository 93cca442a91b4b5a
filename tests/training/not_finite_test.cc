// A job that diverges, through the real fleetrun: its exit code and its line.
#include <gmock/gmock.h>

#include "tests/training/training_job.h"
#include "train/finite_check.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kDiverges = {"learning_rate.base=1e6", "data.batch_size=16",
                                            "train.evaluate_every=0"};

TEST(NotFinite, DivergingJob_EndsWithACodeOfItsOwn) {
  TrainingJob job;
  std::vector<std::string> arguments = {"job.json"};
  for (const std::string& text : kDiverges) arguments.insert(arguments.end(), {"--set", text});
  std::string error;
  EXPECT_EQ(job.run_worker(arguments, &error), kExitNotFinite) << error;
  EXPECT_THAT(error, HasSubstr("there is no checkpoint yet"));
}

TEST(NotFinite, DivergingRanks_EndTheJobWithTheirCode) {
  TrainingJob job;
  const auto run = job.start("two", {"--nproc_per_node=2"}, kDiverges);
  EXPECT_EQ(run->wait(), kExitNotFinite) << run->output();
}

}  // namespace
}  // namespace fleet
