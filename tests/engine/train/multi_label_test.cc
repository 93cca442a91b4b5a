// The task multi_label, from a list of images to its checkpoint.
#include "base/file.h"
#include "data/encode_image.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MultiLabel : public TrainerTest {
 protected:
  static constexpr int kSide = 8, kImages = 32;

  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = output_ + "_images";
    fs::create_directories(folder_);
    std::string list;
    for (int i = 0; i < kImages; ++i) {
      const int shown = i % 4;  // bits: the left half is bright, the upper half is bright
      std::vector<uint8_t> pixels;
      for (int at = 0; at < kSide * kSide; ++at) {
        const bool left = at % kSide < kSide / 2, upper = at / kSide < kSide / 2;
        const int bright = (left && (shown & 1) ? 100 : 0) + (upper && (shown & 2) ? 100 : 0);
        pixels.push_back(static_cast<uint8_t>(bright + (i * 7 + at * 3) % 40));
      }
      const std::string name = std::to_string(i) + ".png";
      write_file_atomically(folder_ + "/" + name, data::encode_png(pixels, kSide, kSide, 1));
      list += name + (shown == 3 ? " 0,1" : shown == 2 ? " 1" : shown == 1 ? " 0" : "") + "\n";
    }
    write_file_atomically(folder_ + "/list.txt", list);
  }
  void TearDown() override {
    TrainerTest::TearDown();
    fs::remove_all(folder_);
  }

  Job labels_job(const std::vector<std::string>& overrides) const {
    const std::string list = folder_ + "/list.txt";
    return job(
        with({"task=multi_label", "data.source=image_labels", "data.train.list=" + list,
              "data.test.list=" + list, "data.mean=0.5", "data.std=0.25", "model.num_classes=2",
              "model.dropout=0", "train.epochs=8", "data.batch_size=8"},
             overrides));
  }
  std::string folder_;
};

TEST_F(MultiLabel, Classes_AreLearned) {
  const Outcome outcome = run(labels_job({"checkpoint.keep_best=mAP"}), 1);
  EXPECT_GT(outcome.results[0].evaluation.value("mAP"), 0.99);
  const auto line = events("test").back();
  EXPECT_EQ(line["mAP"], outcome.results[0].evaluation.value("mAP"));
  EXPECT_EQ(line["samples"], kImages);
  EXPECT_EQ(line["class_ap"].size(), 2u);
  EXPECT_FALSE(events("train").back().contains("mAP")) << "it needs all samples";
}

TEST_F(MultiLabel, Metrics_AreNamed) {
  run(labels_job({"train.metrics=['macro_f1','auroc','accuracy']", "train.evaluate_classes=true",
                  "checkpoint.keep_best=micro_f1"}),
      2);
  const auto line = events("test").back();
  for (const char* name : {"mAP", "macro_f1", "auroc", "accuracy", "micro_f1"}) {
    EXPECT_GT(line[name], 0.9) << name;
  }
  EXPECT_EQ(line["class_f1"].size(), 2u);
  const auto file = nlohmann::json::parse(read_file(output_ + "/evaluation.json"));
  EXPECT_EQ(file["worst"].size(), 16u);
  EXPECT_FALSE(file.contains("confusion")) << "labels do not exclude each other";
  EXPECT_THAT(failure(labels_job({"train.metrics=['kappa']"})), HasSubstr("'kappa'"));
}

TEST_F(MultiLabel, TwoRanks_FollowOne) {
  const Outcome one = run(labels_job({"train.epochs=2"}), 1);
  const auto whole = events("test").back();
  fs::remove_all(output_);
  const Outcome two = run(labels_job({"train.epochs=2", "data.batch_size=4"}), 2);
  const auto halves = events("test").back();
  EXPECT_LT(distance(one.weights[0], two.weights[0]), 1e-4);
  EXPECT_NEAR(whole["loss"], halves["loss"], 1e-5);
  EXPECT_NEAR(whole["mAP"], halves["mAP"], 1e-3);
}

TEST_F(MultiLabel, CheckpointOfAnotherTask_IsRefused) {
  run(labels_job({"train.epochs=1"}), 1);
  const std::string checkpoint = *latest_checkpoint(output_ + "/checkpoints");
  EXPECT_THAT(failure(job({"model.num_classes=2", "model.dropout=0", "data.batch_size=8",
                           "checkpoint.resume=" + checkpoint})),
              HasSubstr("'multi_label'"));
}

TEST_F(MultiLabel, LabelThatIsNoClass_NamesItsLine) {
  write_file_atomically(folder_ + "/list.txt", "0.png 0\n1.png 0,2\n");
  EXPECT_THAT(failure(labels_job({})), HasSubstr("list.txt:2"));
  write_file_atomically(folder_ + "/list.txt", "0.png 0;1\n");
  EXPECT_THAT(failure(labels_job({})), HasSubstr("list.txt:1"));
}

TEST_F(MultiLabel, MixedImages_AreRefused) {
  EXPECT_THAT(failure(labels_job({"data.augment.mixup_alpha=0.2"})), HasSubstr("mixup_alpha"));
}

// Keys belong to their tasks.
TEST_F(MultiLabel, KeyOfAnotherTask_IsRefused) {
  EXPECT_THAT(usage_failure([&] { labels_job({"train.ignore_index=1"}); }),
              HasSubstr("image_classification"));
}

}  // namespace
}  // namespace fleet
