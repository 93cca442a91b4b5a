// Jobs that train from a pack (fleetrun pack), started as a user would.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/training/training_job.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PackedData : public ::testing::Test {
 protected:
  // fleetrun pack with these words; its output.
  std::string pack(const std::vector<std::string>& words, int code = 0) {
    std::vector<std::string> all = {"pack"};
    all.insert(all.end(), words.begin(), words.end());
    Fleetrun fleetrun(job_.folder(), "pack" + std::to_string(++runs_), all);
    EXPECT_EQ(fleetrun.wait(), code) << fleetrun.output();
    return fleetrun.output();
  }
  std::vector<std::string> long_job(const std::string& output, const std::string& more = "") {
    std::vector<std::string> overrides = {
        "train.epochs=20",        "checkpoint.every_steps=10", "train.evaluate_every=0",
        "train.output=" + output, "data.global_batch_size=64", "data.augment.mixup_alpha=0.3"};
    if (!more.empty()) overrides.push_back(more);
    return overrides;
  }
  std::vector<std::string> packed(std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"data.source=packed", "data.root=" + job_.path("packed")});
    return overrides;
  }

  TrainingJob job_;
  int runs_ = 0;
};

TEST_F(PackedData, KilledAndResumed_IsBitIdenticalToTheSource) {
  EXPECT_THAT(pack({"job.json", "packed", "--raw"}), HasSubstr("1370 images"));
  EXPECT_THAT(pack({"job.json", "packed", "--raw"}), HasSubstr("were there already"));
  const std::string steps = "train.max_steps=150";
  auto whole = job_.start("whole", {"--nproc_per_node=2"}, long_job("whole", steps));
  ASSERT_EQ(whole->wait(), 0) << whole->output();

  auto cut = job_.start("cut", {"--nproc_per_node=2"}, packed(long_job("cut")));
  job_.folder().wait_for("cut/checkpoints/step_00000010/state.json");
  const auto workers = job_.folder().processes("fleet-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[0], SIGKILL);
  EXPECT_EQ(cut->wait(), 128 + SIGKILL) << cut->output();
  std::vector<std::string> overrides = packed(long_job("cut", steps));
  overrides.push_back("checkpoint.resume=auto");
  auto resumed = job_.start("resumed", {"--nproc_per_node=2"}, overrides);
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  EXPECT_EQ(distance(job_.weights("whole"), job_.weights("cut")), 0);

  // Other numbers of ranks add gradients in another order.
  for (const int ranks : {1, 4}) {
    const std::string name = "ranks" + std::to_string(ranks);
    auto other = job_.start(name, {"--nproc_per_node=" + std::to_string(ranks)},
                            packed(long_job(name, steps)));
    ASSERT_EQ(other->wait(), 0) << other->output();
    EXPECT_LT(distance(job_.weights("whole"), job_.weights(name)), 1e-3) << ranks;
  }
}

TEST_F(PackedData, MissingFile_EndsTheJobWithOneLine) {
  pack({"job.json", "packed", "--raw"});
  std::filesystem::remove(job_.path("packed/train-00007.pack"));
  auto run = job_.start("run", {}, packed({}));
  EXPECT_NE(run->wait(), 0);
  EXPECT_THAT(run->output(), AllOf(HasSubstr("packed/train-00007.pack: the pack is incomplete"),
                                   HasSubstr("run fleetrun pack again")));
}

TEST_F(PackedData, WrongWords_AreRefused) {
  EXPECT_THAT(pack({"job.json"}, 2), HasSubstr("a job file and a folder"));
  EXPECT_THAT(pack({"train.py", "packed"}, 2), HasSubstr("is not a job file"));
  EXPECT_THAT(pack({"job.json", "packed", "--raw", "--jpeg"}, 2), HasSubstr("contradict"));
  EXPECT_THAT(pack({"job.json", "packed", "--raw", "--quality=80"}, 2), HasSubstr("no quality"));
  EXPECT_THAT(pack({"job.json", "packed", "--set", "data.nothing=1"}, 2),
              HasSubstr("data.nothing"));
}

}  // namespace
}  // namespace fleet
