// The task segmentation, from folders of images and masks to its checkpoint and predicted masks.
#include <set>

#include "base/file.h"
#include "data/encode_image.h"
#include "data/index_png.h"
#include "models/model.h"
#include "tests/engine/train/trainer_job.h"
#include "train/predict.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Logits of half the size, enlarged; and those of a second head.
FLEET_MODEL(test_pixels) {
  def.help = "a test";
  def.schema = model_schema(3).boolean("aux", true, "a test");
  def.outputs = {"pixel_logits", "aux_logits"};
  def.build = [](Network& network, const NamedVars& inputs, const Settings& settings) -> NamedVars {
    const VarId image = inputs.at("image");
    const int64_t classes = settings.integer("num_classes");
    VarId x = network.relu(
        network.conv2d("conv", image, {.channels = 8, .stride = 2, .padding = 1, .bias = true}));
    x = network.block("conv", x);
    const auto head = [&](const std::string& name) {
      const VarId logits = network.block(
          name, network.conv2d(name, x, {.channels = classes, .kernel = 1, .bias = true}));
      const Shape size = network.shape(image);
      return network.apply("resize_bilinear", {logits},
                           {{"size", std::vector<int64_t>{size[2], size[3]}}});
    };
    NamedVars outputs = {{"pixel_logits", head("classifier")}};
    if (network.wants("aux_logits")) {
      outputs["aux_logits"] = network.training() ? head("aux") : outputs["pixel_logits"];
    }
    return outputs;
  };
}

class Segmentation : public TrainerTest {
 protected:
  static constexpr int kSide = 16, kImages = 13;

  void SetUp() override {
    TrainerTest::SetUp();
    folder_ = output_ + "_pixels";
    for (const std::string part : {"train", "val"}) {
      fs::create_directories(folder_ + "/" + part + "/images");
      fs::create_directories(folder_ + "/" + part + "/masks");
      for (int i = 0; i < kImages; ++i) add(part, i);
    }
  }
  void TearDown() override {
    TrainerTest::TearDown();
    fs::remove_all(folder_);
  }

  // A block of class 1 or 2, brighter than the rest, with a border that has no class; some images
  // have more of it, so that they differ in labelled pixels.
  void add(const std::string& part, int i) const {
    std::vector<uint8_t> image, mask;
    const int begin = 2 + i % 4, end = begin + 8;
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const bool inside = x >= begin && x < end && y >= begin && y < end;
        const bool border = inside && (x == begin || y == begin);
        const int label = inside ? 1 + i % 2 : 0;
        mask.push_back(border || (i % 3 == 0 && y < 2) ? 255 : static_cast<uint8_t>(label));
        image.push_back(static_cast<uint8_t>(20 + 100 * label + (x * 7 + y * 3 + i) % 20));
      }
    }
    const std::string name = "/" + std::to_string(i) + ".png";
    write_file_atomically(folder_ + "/" + part + "/images" + name,
                          data::encode_png(image, kSide, kSide, 1));
    write_file_atomically(folder_ + "/" + part + "/masks" + name,
                          data::encode_index_png(mask, kSide, kSide));
  }

  Job pixels_job(const std::vector<std::string>& overrides) const {
    ConfigTree tree = ConfigTree::from_json(R"({
      "task": "segmentation", "model": {"name": "test_pixels", "num_classes": 3},
      "data": {"source": "image_masks", "batch_size": 4, "mean": [0.5], "std": [0.25],
               "image": {"channels": 1, "height": 16, "width": 16}},
      "optimizer": {"name": "momentum"}, "learning_rate": {"name": "constant", "base": 0.1},
      "train": {"epochs": 6, "fetch_every": 2}})",
                                            "test");
    apply_overrides(tree, with({"data.root=" + folder_, "train.output=" + output_}, overrides));
    return make_job(tree);
  }

  std::string folder_;
};

TEST_F(Segmentation, Classes_AreLearned) {
  const Outcome outcome = run(
      pixels_job({"train.epochs=12", "checkpoint.keep_best=mIoU", "train.evaluate_classes=true"}),
      1);
  EXPECT_GT(outcome.results[0].evaluation.value("mIoU"), 0.7);
  const auto line = events("test").back();
  EXPECT_EQ(line["mIoU"], outcome.results[0].evaluation.value("mIoU"));
  EXPECT_GT(line["pixel_accuracy"], 0.9);
  ASSERT_EQ(line["class_iou"].size(), 3u);
  double sum = 0;
  for (const double one : line["class_iou"]) sum += one;
  EXPECT_NEAR(sum / 3, line["mIoU"], 1e-9);
  EXPECT_TRUE(fs::exists(output_ + "/confusion_matrix.csv"));
}

// 13 samples: the last batch is padded, and one of the two ranks has less than the other.
TEST_F(Segmentation, TwoRanks_FollowOne) {
  const std::vector<std::string> keys = {"train.epochs=2", "data.augment.flip=true",
                                         "data.augment.random_crop_padding=2", "data.tail=pad"};
  const Outcome one = run(pixels_job(keys), 1);
  const auto whole = events("test").back();
  fs::remove_all(output_);
  const Outcome two = run(pixels_job(with(keys, {"data.batch_size=2"})), 2);
  const auto halves = events("test").back();
  EXPECT_LT(distance(one.weights[0], two.weights[0]), 1e-4);
  EXPECT_NEAR(whole["loss"], halves["loss"], 1e-5);
  EXPECT_NEAR(whole["mIoU"], halves["mIoU"], 1e-3);
}

TEST_F(Segmentation, Resumed_EndsAsUninterrupted) {
  const std::vector<std::string> keys = {"train.epochs=2", "data.augment.flip=true"};
  const Outcome whole = run(pixels_job(keys), 1);
  fs::remove_all(output_);
  run(pixels_job(with(keys, {"train.max_steps=3", "checkpoint.every_steps=3"})), 1);
  const Outcome resumed = run(pixels_job(with(keys, {"checkpoint.resume=auto"})), 1);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
}

TEST_F(Segmentation, WithoutAuxiliaryHead_HasNoParametersOfIt) {
  const Outcome without = run(pixels_job({"train.epochs=1", "train.aux_weight=0"}), 1);
  EXPECT_FALSE(without.weights[0].contains("aux.weight"));
  fs::remove_all(output_);
  EXPECT_TRUE(run(pixels_job({"train.epochs=1"}), 1).weights[0].contains("aux.weight"));
}

TEST_F(Segmentation, Prediction_IsAMaskOfThePicturesSize) {
  run(pixels_job({}), 1);
  // Twice as large: the network gets it at half its size.
  std::vector<uint8_t> image(size_t{32} * 48, 20);
  for (int y = 8; y < 24; ++y) {
    for (int x = 12; x < 36; ++x) image[static_cast<size_t>(y) * 48 + x] = 220;
  }
  const std::string picture = folder_ + "/large.png";
  write_file_atomically(picture, data::encode_png(image, 32, 48, 1));
  const std::string out = folder_ + "/out";
  std::string first;
  for (const int world : {1, 2}) {
    const Job job =
        pixels_job({"predict.input=['" + picture + "','" + folder_ + "/val/images']",
                    "predict.output=" + out, "data.eval.crop_pct=1", "data.eval.crop_mode=squash"});
    run_ranks_well(world, [&](RankThread& rank) {
      HostDevice device;
      predict(
          job, device,
          {.rank = rank.rank, .world = world, .control = rank.communicator, .store = rank.store});
    });
    const std::string lines = read_file(out + "/predictions.jsonl");
    const auto line = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
    EXPECT_EQ(line["file"], picture);
    EXPECT_EQ(line["mask"], out + "/large.png");
    EXPECT_EQ(std::ranges::count(lines, '\n'), kImages + 1);
    const std::string file = read_file(out + "/large.png");
    data::IndexPng png;
    ASSERT_TRUE(png.open({reinterpret_cast<const uint8_t*>(file.data()), file.size()}));
    ASSERT_EQ(png.height(), 32);
    ASSERT_EQ(png.width(), 48);
    std::vector<uint8_t> mask;
    ASSERT_TRUE(
        png.read(0, 32, [&](int, const uint8_t* row) { mask.insert(mask.end(), row, row + 48); }));
    EXPECT_EQ(mask[0], 0);
    EXPECT_NE(mask[16 * 48 + 24], 0);
    if (first.empty()) first = file;
    EXPECT_EQ(file, first);
  }
}

// The same file and pictures on any number of ranks.
TEST_F(Segmentation, ByClass_WritesAFileForReports) {
  for (const int world : {1, 2}) {
    fs::remove_all(output_);
    run(pixels_job({"train.epochs=1", "train.evaluate_classes=true"}), world);
    const auto file = nlohmann::json::parse(read_file(output_ + "/evaluation.json"));
    const auto line = events("test").back();
    EXPECT_EQ(file["unit"], "pixels");
    EXPECT_EQ(file["support"], line["class_pixels"]);
    EXPECT_EQ(file["confusion"]["counts"].size(), 9U);
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(file["iou"][c], line["class_iou"][c], 1e-6);
      EXPECT_NEAR(file["recall"][c], line["class_accuracy"][c], 1e-6);
    }
    ASSERT_FALSE(file["worst"].empty());
    std::set<std::string> names;
    double before = 1;
    for (const auto& sample : file["worst"]) {
      names.insert(sample["name"]);
      EXPECT_LE(sample["wrong"], before);
      before = sample["wrong"];
      EXPECT_GT(before, 0);
      EXPECT_TRUE(sample["jpeg"].get<std::string>().starts_with("/9j/")) << sample;
    }
    EXPECT_EQ(names.size(), file["worst"].size()) << "each picture once";
  }
}

TEST_F(Segmentation, NamedMetric_IsFollowed) {
  run(pixels_job({"train.epochs=2", "train.metrics=['balanced_accuracy']",
                  "checkpoint.keep_best=macro_f1", "train.early_stopping=weighted_iou",
                  "train.evaluate_classes=true"}),
      2);
  const auto line = events("test").back();
  double accuracies = 0;
  for (const double one : line["class_accuracy"]) accuracies += one / 3;
  EXPECT_NEAR(line["balanced_accuracy"], accuracies, 1e-9);
  EXPECT_GT(line["weighted_iou"], 0);
  EXPECT_EQ(events("summary").back()["best_metric"], "macro_f1");
}

// AUC needs scores of whole samples, and precision two classes.
TEST_F(Segmentation, MetricOfOtherResults_IsRefused) {
  EXPECT_THAT(refusal(pixels_job({"train.metrics=['auroc']"})), IsUsageError("train.metrics"));
  EXPECT_THAT(refusal(pixels_job({"train.metrics=['precision']"})), IsUsageError("train.metrics"));
  EXPECT_THAT(refusal(pixels_job({"checkpoint.keep_best=acc1"})),
              IsUsageError("checkpoint.keep_best.metric"));
}

// The pixels of ranks and micro-batches have other classes: only the weights of all divide a loss.
TEST_F(Segmentation, ClassWeights_TrainAsOneLargeBatch) {
  const std::vector<std::string> keys = {"train.class_weights=[0.3, 2, 5]", "train.epochs=2",
                                         "data.tail=pad", "train.label_smoothing=0.1"};
  const auto train = [&](const std::vector<std::string>& more, int ranks) {
    fs::remove_all(output_);
    return together(run(pixels_job(with(keys, more)), ranks));
  };
  const Weights whole = train({}, 1);
  const auto loss = events("test").back()["loss"];
  EXPECT_GT(distance(whole, train({"train.class_weights=[1, 1, 1]"}, 1)), 1e-3);
  EXPECT_LT(distance(whole, train({"data.batch_size=2"}, 2)), 1e-5);
  EXPECT_NEAR(events("test").back()["loss"], loss, 1e-5);
  for (const int stages : {1, 2}) {
    const Weights parts =
        train({"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"}, stages);
    EXPECT_LT(distance(whole, parts), 1e-5) << stages;
  }
}

TEST_F(Segmentation, ClassWeights_ThatCannotBeKept_AreRefused) {
  EXPECT_THAT(refusal(pixels_job({"train.class_weights=balanced"})),
              IsUsageError("train.class_weights=balanced"));
  EXPECT_THAT(refusal(pixels_job({"train.class_weights=[1, 2]"})),
              IsUsageError("train.class_weights"));
  EXPECT_EQ(refusal(pixels_job({"train.class_weights=[1, 2, 3]", "strategy.gradient_merge=true",
                                "strategy.gradient_merge_configs.k_steps=2"}))
                .where(),
            "strategy.gradient_merge");
}

// Both heads are in the last stage.
TEST_F(Segmentation, Strategies_TrainAsOneRank) {
  const std::vector<std::string> keys = {"train.epochs=2", "data.tail=pad"};
  const auto train = [&](const std::vector<std::string>& more, int ranks) {
    fs::remove_all(output_);
    return together(run(pixels_job(with(keys, more)), ranks));
  };
  const Weights whole = train({}, 1);
  const auto tested = events("test").back();
  for (const char* stage : {"1", "2", "3"}) {
    const std::string key = std::string("strategy.sharding_configs.stage=") + stage;
    EXPECT_LT(distance(whole, train({"data.batch_size=2", "strategy.sharding=true", key}, 2)), 1e-5)
        << stage;
    EXPECT_NEAR(events("test").back()["mIoU"], tested["mIoU"], 1e-3);
  }
  EXPECT_LT(
      distance(
          whole,
          train({"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"}, 2)),
      1e-5);
  EXPECT_NEAR(events("test").back()["loss"], tested["loss"], 1e-5);
  EXPECT_NEAR(events("test").back()["mIoU"], tested["mIoU"], 1e-3);
}

// The map of the second head, and the image, come from an earlier stage.
TEST_F(Segmentation, Network_TrainsInPipelineStages) {
  const auto train = [&](int ranks) {
    fs::remove_all(output_);
    const Outcome outcome =
        run(pixels_job({R"(model={"name": "deeplabv3_mobilenet_v3_large", "num_classes": 3})",
                        "data.image.channels=3", "train.max_steps=1", "train.fetch_every=1",
                        "train.evaluate_every=0", "learning_rate.base=0.01",
                        "strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2"}),
            ranks);
    EXPECT_TRUE(together(outcome).contains("aux_classifier.0.weight"));
    std::vector<double> losses;
    for (const auto& line : events("train")) losses.push_back(line["loss"]);
    return losses;
  };
  const std::vector<double> whole = train(1), stages = train(2);
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_NEAR(stages[0], whole[0], 1e-5);
}

TEST_F(Segmentation, MixedImages_AreRefused) {
  EXPECT_THAT(failure(pixels_job({"data.augment.mixup_alpha=0.2"})), HasSubstr("mixup"));
}

}  // namespace
}  // namespace fleet
