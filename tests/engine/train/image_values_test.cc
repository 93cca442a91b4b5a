// Images whose labels are numbers or shares of classes, from a table to the lines of an evaluation.
#include "base/file.h"
#include "data/encode_image.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

class ImageValues : public TrainerTest {
 protected:
  static constexpr int kSide = 8, kImages = 32;

  // Grey images; their brightness, and what is left of it.
  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = output_ + "_images";
    fs::create_directories(folder_);
    std::string table = "file,bright,dark\n";
    for (int i = 0; i < kImages; ++i) {
      std::vector<uint8_t> pixels;
      for (int at = 0; at < kSide * kSide; ++at) {
        pixels.push_back(static_cast<uint8_t>(i * 7 + (at * 5) % 20));
      }
      const std::string name = std::to_string(i) + ".png";
      write_file_atomically(folder_ + "/" + name, data::encode_png(pixels, kSide, kSide, 1));
      const double bright = i / double{kImages};
      table += name + "," + std::to_string(bright) + "," + std::to_string(1 - bright) + "\n";
    }
    write_file_atomically(folder_ + "/table.csv", table);
  }
  void TearDown() override {
    TrainerTest::TearDown();
    fs::remove_all(folder_);
  }

  Job table_job(const std::vector<std::string>& overrides) const {
    const std::string table = folder_ + "/table.csv";
    return job(
        with({"data.source=image_table", "data.train.file=" + table, "data.test.file=" + table,
              "data.label_column=[\"bright\",\"dark\"]", "data.mean=0.5", "data.std=0.25",
              "model.num_classes=2", "model.dropout=0", "train.epochs=8", "data.batch_size=8"},
             overrides));
  }
  std::string folder_;
};

TEST_F(ImageValues, Numbers_AreLearnedAlikeOnTwoRanks) {
  for (const std::string loss : {"mse", "l1", "smooth_l1"}) {
    const std::vector<std::string> keys = {"task=regression", "data.label_type=number",
                                           "train.loss=" + loss,
                                           "train.metrics=[\"r2\",\"mae\",\"rmse\"]"};
    const Outcome one = run(table_job(keys), 1);
    const auto line = events("test").back();
    if (loss != "l1") {  // it oscillates at this rate
      EXPECT_GT(line["r2"], 0.8) << loss;
      EXPECT_LT(line["mae"], 0.2) << loss;
    }
    fs::remove_all(output_);
    const Outcome two = run(table_job(with(keys, {"data.batch_size=4"})), 2);
    EXPECT_LT(distance(one.weights[0], two.weights[0]), 1e-4) << loss;
    EXPECT_NEAR(events("test").back()["loss"], line["loss"], 1e-5) << loss;
    fs::remove_all(output_);
  }
}

TEST_F(ImageValues, Shares_AreLearnedAlikeOnTwoRanks) {
  for (const std::string loss : {"cross_entropy", "bce", "focal"}) {
    const std::vector<std::string> keys = {"data.label_type=share", "train.loss=" + loss};
    const Outcome one = run(table_job(keys), 1);
    const auto line = events("test").back();
    EXPECT_GT(line["acc1"], 0.8) << loss;
    fs::remove_all(output_);
    const Outcome two = run(table_job(with(keys, {"data.batch_size=4"})), 2);
    EXPECT_LT(distance(one.weights[0], two.weights[0]), 1e-4) << loss;
    fs::remove_all(output_);
  }
}

// The pipeline counts these: a pair of images has a share of each label.
TEST_F(ImageValues, MixedLabelsOfOtherLosses_AreAlikeOnTwoRanks) {
  for (const std::string more : {"train.loss=bce", "train.loss=focal"}) {
    const std::vector<std::string> keys = {"data.source=synthetic",
                                           "data.augment.mixup_alpha=0.4",
                                           "data.augment.cutmix_alpha=1",
                                           "model.dropout=0",
                                           "train.epochs=2",
                                           more};
    const Outcome one = run(job(with(keys, {"data.batch_size=32"})), 1);
    fs::remove_all(output_);
    const Outcome two = run(job(with(keys, {"data.batch_size=16"})), 2);
    EXPECT_LT(distance(one.weights[0], two.weights[0]), 1e-5) << more;
    fs::remove_all(output_);
  }
}

TEST_F(ImageValues, KeysThatDoNotFit_AreRefused) {
  EXPECT_THAT(failure(table_job(
                  {"task=regression", "data.label_type=number", "data.augment.mixup_alpha=0.2"})),
              ::testing::HasSubstr("mixup_alpha"));
  EXPECT_THAT(refusal(table_job({"data.label_type=share", "model.num_classes=3"})),
              IsUsageError("model.num_classes"));
  EXPECT_THAT(refusal(table_job({"data.label_type=share", "train.class_weights=balanced"})),
              IsUsageError("train.class_weights"));
}

}  // namespace
}  // namespace fleet
