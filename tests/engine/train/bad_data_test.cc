// Data that cannot be read, in training.
#include <filesystem>
#include <random>

#include "tests/engine/train/trainer_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

// A PNG of 8 x 8 grey pixels.
constexpr char kImage[] =
    "89504e470d0a1a0a0000000d4948445200000008000000080800000000e164e1570000000e49444154789c6338"
    "01050c94310008b13201a8a8e5130000000049454e44ae426082";
// One of 9 rows.
constexpr char kTaller[] =
    "89504e470d0a1a0a0000000d49484452000000080000000908000000002a3832f20000000e49444154789c6328"
    "8702062a31004c18217995400c7b0000000049454e44ae426082";

class BadData : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = output_ + ".data";
    std::filesystem::create_directories(folder_);
    std::string list;
    for (int i = 0; i < kSamples; ++i) {
      write(i, image());
      list += std::to_string(i) + ".png " + std::to_string(i % 4) + "\n";
    }
    std::ofstream(folder_ + "/list.txt") << list;
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    TrainerTest::TearDown();
  }
  static std::string image(const char* hex = kImage) {
    std::string bytes;
    for (const char* digit = hex; *digit; digit += 2) {
      bytes += static_cast<char>(std::stoi(std::string(digit, 2), nullptr, 16));
    }
    return bytes;
  }
  // A BMP of 8 x 8 pixels of noise. Over equal images, batch norm divides by almost 0.
  static std::string noise(int seed) {
    std::string bytes(54, '\0');
    bytes.replace(0, 2, "BM");
    bytes[10] = 54, bytes[14] = 40, bytes[18] = 8, bytes[22] = 8, bytes[26] = 1, bytes[28] = 24;
    bytes[2] = static_cast<char>(54 + 192);
    std::minstd_rand random(static_cast<unsigned>(seed) + 1);
    for (int i = 0; i < 192; ++i) bytes += static_cast<char>(random() >> 8);
    return bytes;
  }
  void write(int number, const std::string& content) {
    std::ofstream(folder_ + "/" + std::to_string(number) + ".png") << content;
  }
  // 16 samples a step over all ranks, in order.
  Job list_job(int world, const std::vector<std::string>& more) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "mlp", "num_classes": 4, "hidden": [8]},
      "data": {"source": "image_list", "train": {"list": "list.txt"}, "test": {"list": "list.txt"},
               "shuffle": false, "image": {"channels": 1, "height": 8, "width": 8}},
      "train": {"epochs": 2, "fetch_every": 1}})",
                                            "test");
    apply_overrides(tree, with({"data.root=" + folder_, "train.output=" + output_,
                                "data.batch_size=" + std::to_string(16 / world)},
                               more));
    return make_job(tree);
  }
  static constexpr int kSamples = 64;
  std::string folder_;
};

TEST_F(BadData, DamagedCount_IsTheSameForEveryNumberOfRanks) {
  for (int i : {3, 4, 20, 63}) write(i, "x");
  for (int world : {1, 2, 4}) {
    std::filesystem::remove_all(output_);
    EXPECT_EQ(run(list_job(world, {"data.shuffle=true"}), world).results[0].damaged, 4) << world;
    EXPECT_EQ(events("summary")[0]["damaged"], 4);
  }
}

// Nobody loses the steps before it.
TEST_F(BadData, FailureThatEndsTheJob_SavesFirst) {
  for (int world : {1, 2}) {
    for (int step : {2, 3}) {  // or the epoch's last
      write(16 * step - 4, image());
      write(16 * step + 12, "x");  // the last of two ranks' sample
      std::filesystem::remove_all(output_);
      const Job job = list_job(world, {"data.on_damaged=fail"});
      const auto ends = ends_of(job, world);
      EXPECT_EQ(ends.back().code, ErrorCode::kUsage);
      if (world == 2) {
        EXPECT_EQ(ends[0].code, ErrorCode::kPeerLost);
        EXPECT_EQ(ends[0].where, "rank 1");
      }
      // Alone it saves before the step; two ranks had begun it, without that rank's samples.
      const auto saved = latest_checkpoint(output_ + "/checkpoints");
      ASSERT_TRUE(saved);
      EXPECT_EQ(step_of_checkpoint(*saved), world == 1 ? step : step + 1);
    }
  }
}

// A later prediction would take its untrained weights for the newest.
TEST_F(BadData, FailureBeforeTheFirstSample_SavesNothing) {
  for (int world : {1, 2}) {
    write(0, "x");
    write(8, "x");  // the first of rank 1
    std::filesystem::remove_all(output_);
    const Job job = list_job(world, {"data.on_damaged=fail"});
    const auto ends = ends_of(job, world);
    EXPECT_EQ(ends[0].code, ErrorCode::kUsage);
    EXPECT_FALSE(latest_checkpoint(output_ + "/checkpoints")) << world;
  }
}

// Before the first step, and with the same words on each rank.
TEST_F(BadData, ImageOfAnotherSize_IsRefusedByAllRanksAtTheStart) {
  write(61, image(kTaller));
  for (int world : {1, 2, 4}) {
    std::filesystem::remove_all(output_);
    const Job job = list_job(world, {"data.on_damaged=skip"});
    const auto ends = ends_of(job, world, [](Trainer&, int) {});
    for (const RankEnd& end : ends) {
      EXPECT_EQ(end.code, ErrorCode::kUsage) << world;
      EXPECT_TRUE(end.where.ends_with("/61.png")) << end.where;
      EXPECT_EQ(end.message, ends[0].message);
      EXPECT_NE(end.message.find("data.eval.resize="), std::string::npos);
    }
    EXPECT_FALSE(std::filesystem::exists(output_)) << "no run";
  }
}

// Only the test images count.
TEST_F(BadData, ImageOfAnotherSizeInTraining_DoesNotKeepFromEvaluating) {
  run(list_job(1, {"train.max_steps=1"}), 1);
  write(64, image(kTaller));
  std::ofstream(folder_ + "/train.txt") << "0.png 0\n64.png 1\n";
  const std::vector<std::string> other{"data.train.list=train.txt", "data.batch_size=16"};
  EXPECT_TRUE(run(list_job(1, with(other, {"train.evaluate_only=true"})), 1).results[0].evaluated);
  EXPECT_THAT(refusal(list_job(1, other)), IsUsageError(folder_ + "/64.png"));
}

// Evaluation, too, ends for all ranks.
TEST_F(BadData, FailureInTheLastEvaluation_IsNoSuccess) {
  write(60, "x");
  const Job job = list_job(2, {"data.on_damaged=fail", "train.max_steps=3"});
  const auto ends = ends_of(job, 2);
  EXPECT_TRUE(ends[0].code && ends[1].code);
  EXPECT_TRUE(ends[0].where.ends_with("60.png") || ends[1].where.ends_with("60.png"))
      << ends[0].message << ends[1].message;
}

TEST_F(BadData, FailureInAnEvaluationOnly_IsNoSuccess) {
  run(list_job(1, {"train.max_steps=1"}), 1);
  write(60, "x");
  for (int world : {1, 2}) {
    const Job job = list_job(world, {"data.on_damaged=fail", "train.evaluate_only=true"});
    for (const RankEnd& end : ends_of(job, world)) EXPECT_TRUE(end.code) << world;
  }
}

// The pass of train.swa for statistics, at the end, reads images that these epochs do not.
TEST_F(BadData, FailureInThePassForStatistics_IsNoSuccess) {
  const std::vector<std::string> keys = {
      R"(model={"name": "resnet18", "num_classes": 4, "width": 4})", "data.on_damaged=fail",
      "train.evaluate_every=0", "checkpoint.resume=auto"};
  for (int i = 0; i < kSamples; ++i) write(i, noise(i));
  for (int world : {1, 2}) {
    write(63, noise(63));
    std::filesystem::remove_all(output_);
    run(list_job(world, with(keys, {"train.epochs=1"})), world);
    write(63, "x");  // in the last batch, of the last rank
    const auto ends = ends_of(
        list_job(world,
                 with(keys, {"train.max_steps=5", "train.swa=1", "train.swa.every_steps=1"})),
        world, [&](Trainer& trainer, int) {
          EXPECT_THROW(trainer.run(), Error);
          const Weights weights = weights_of(trainer.session().executor());
          EXPECT_EQ(weights.at("ema.bn1.running_mean"), weights.at("bn1.running_mean"));
          throw Error(ErrorCode::kUsage, "ended", "", "");
        });
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, ErrorCode::kUsage) << world;
  }
}

}  // namespace
}  // namespace fleet
