// Names of classes: from folders and the job file into checkpoints, metrics and messages.
#include "base/file.h"
#include "tests/engine/train/trainer_job.h"
#include "train/model_card.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"cat", "dog", "eel", "fox"};

class ClassNames : public TrainerTest {
 protected:
  static std::string set(const std::vector<std::string>& names) {
    return "data.class_names=" + nlohmann::json(names).dump();
  }
  std::string checkpoint() const { return *latest_checkpoint(output_ + "/checkpoints"); }
  std::string weights() const { return checkpoint() + "/model.safetensors"; }
  ModelCard card() const { return read_card(read_safetensors(weights()).metadata); }
};

TEST(ModelCard, IsReadBackAndOthersMetadataIsNone) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  const ModelCard card{{"a \"b\", c", "d\\e", "\xc3\xa4"}, {3, 224, 192}};
  write_card(card, &metadata);
  EXPECT_EQ(read_card(metadata), card);
  EXPECT_EQ(read_card({{"classes", "cat, dog"}, {"image", "[1, 2]"}}), ModelCard{});
  EXPECT_EQ(read_card({{"classes", std::string(100000, '[')}}), ModelCard{});
  EXPECT_EQ(read_card({{"image", "[3, -1, 5]"}}), ModelCard{});
}

TEST(ModelCard, OrderOfClasses_IsSaidWithTheirLabels) {
  EXPECT_EQ(class_order_text({}), "");
  EXPECT_EQ(class_order_text({"10", "2"}), "2 classes: 0 10, 1 2");
  EXPECT_TRUE(class_order_text(std::vector<std::string>(1000, "x")).ends_with(", 19 x, ..."));
}

TEST_F(ClassNames, AreInTheCheckpointAndTheMetrics) {
  run(job({set(kNames), "train.evaluate_classes=true"}), 2);
  EXPECT_EQ(card().classes, kNames);
  EXPECT_THAT(card().image, ElementsAre(1, 8, 8));
  EXPECT_EQ(events("test").back()["class_names"], nlohmann::json(kNames));
  EXPECT_TRUE(
      read_file(output_ + "/confusion_matrix.csv").starts_with("class,cat,dog,eel,fox\ncat,"));
}

TEST_F(ClassNames, StayWhereAResumedJobHasNone) {
  run(job({set(kNames), "train.epochs=1"}), 1);
  run(job({"checkpoint.resume=auto"}), 1);
  EXPECT_EQ(card().classes, kNames);
}

TEST_F(ClassNames, OfAnotherOrder_AreRefusedOnResumeAndEvaluation) {
  run(job({set(kNames), "train.epochs=1"}), 1);
  const std::string swapped = set({"cat", "eel", "dog", "fox"});
  for (const auto& more : std::vector<std::vector<std::string>>{
           {"checkpoint.resume=auto"},
           {"checkpoint.resume=auto", "train.evaluate_only=true"},
           {"checkpoint.weights=" + weights(), "train.evaluate_only=true"}}) {
    EXPECT_THAT(failure(job(with({swapped}, more))), HasSubstr("another order: label 1 is 'dog'"));
  }
  EXPECT_THAT(refusal(job({set({"cat", "dog", "eel", "gnu"}), "checkpoint.resume=auto"})),
              IsUsageError());
  EXPECT_EQ(failure(job({set(kNames), "checkpoint.resume=auto"})), "");
}

TEST_F(ClassNames, OfAnotherTask_AreFineToStartFrom) {
  run(job({set(kNames), "train.epochs=1"}), 1);
  const std::string from = output_ + ".safetensors";
  fs::copy_file(weights(), from);
  const std::vector<std::string> others = {"w", "x", "y", "z"};
  run(job({set(others), "checkpoint.weights=" + from, "train.epochs=1"}), 1);
  EXPECT_EQ(card().classes, others);
  fs::remove(from);
}

TEST_F(ClassNames, ThatDoNotFitTheModel_AreRefused) {
  for (const auto& names : std::vector<std::vector<std::string>>{
           {"cat", "dog"}, {"cat", "dog", "eel", "cat"}, {"cat", "dog", "eel", ""}}) {
    EXPECT_THAT(refusal(job({set(names)})), IsUsageError("data.class_names")) << names.back();
  }
}

}  // namespace
}  // namespace fleet
