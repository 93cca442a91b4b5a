// Weights of torchvision and timm expect normalised pixels.
#include "train/foreign_weights.h"

#include <gmock/gmock.h>

#include "train/model_card.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string warning(const std::string& model, const std::vector<std::string>& overrides,
                    const ModelCard& card = {}) {
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": ")" + model + R"("}, "data": {"source": "image_folder"}})", "job.json");
  apply_overrides(tree, overrides);
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  write_card(card, &metadata);
  return missing_normalization(make_job(tree), "weights.pth", metadata);
}

constexpr char kMean[] = "data.mean=[0.485, 0.456, 0.406]";
constexpr char kStd[] = "data.std=[0.229, 0.224, 0.225]";

TEST(ForeignWeights, DefaultMeanAndStd_AreNamedWithTheValues) {
  for (const std::string model : {"resnet18", "vgg16", "vit_b_16", "efficientnet_b0"}) {
    EXPECT_THAT(warning(model, {}),
                AllOf(HasSubstr("weights.pth"), HasSubstr(kMean), HasSubstr(kStd)));
  }
  EXPECT_THAT(warning("resnet18", {"data.mean=0.5"}),
              AllOf(HasSubstr(kStd), Not(HasSubstr(kMean))));
  EXPECT_THAT(warning("resnet18", {"data.std=0.5"}), AllOf(HasSubstr(kMean), Not(HasSubstr(kStd))));
}

TEST(ForeignWeights, ChosenValuesAndOwnRuns_NeedNoWarning) {
  EXPECT_EQ(warning("resnet18", {"data.mean=0", "data.std=1"}), "");
  EXPECT_EQ(warning("resnet18", {}, {.classes = {}, .image = {3, 224, 224}}), "");
  EXPECT_EQ(warning("resnet18", {"data.image.channels=1"}), "");
  EXPECT_EQ(warning("resnet18", {"data.source=synthetic"}), "");
  for (const std::string model : {"lenet", "mlp", "resnet20"}) EXPECT_EQ(warning(model, {}), "");
}

}  // namespace
}  // namespace fleet
