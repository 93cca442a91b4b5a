// Test-time averaging: predictions over views of an image against the means of predictions of the
// views, written as images of their own.
#include <sstream>

#include "tests/engine/train/predicting_lenet.h"

namespace fleet {
namespace {

using Rows = std::vector<std::vector<float>>;
class PredictAverage : public PredictingLenet {
 protected:
  // Writes images and returns their paths.
  std::vector<std::string> written(const std::string& name, const std::vector<GreyImage>& images) {
    std::vector<std::string> paths;
    for (size_t i = 0; i < images.size(); ++i) {
      paths.push_back(path_of(name + std::to_string(i) + ".png"));
      images[i].write(paths.back());
    }
    return paths;
  }
  // Row r is the mean of rows [r * views, (r + 1) * views) of `of`.
  static void expect_means(const Rows& means, const Rows& of) {
    const size_t views = of.size() / means.size();
    for (size_t r = 0; r < means.size(); ++r) {
      for (size_t i = 0; i < means[r].size(); ++i) {
        double sum = 0;
        for (size_t v = 0; v < views; ++v) sum += of[r * views + v][i];
        EXPECT_NEAR(means[r][i], sum / static_cast<double>(views), 2e-6) << r << " " << i;
      }
    }
  }
};

TEST_F(PredictAverage, Flip_IsTheMeanOverTheMirrorImage) {
  std::vector<GreyImage> images, both;
  for (int i = 0; i < 3; ++i) {
    images.push_back(GreyImage::numbered(i));
    both.push_back(images.back());
    both.push_back(images.back().mirrored());
  }
  const auto own = written("own", images), views = written("view", both);
  const Rows of = rows(1, views, {});
  for (const int world : {1, 2}) expect_means(rows(world, own, {"predict.average=flip"}), of);
  // Lines rank the means.
  const Rows means = rows(1, own, {"predict.average=flip"});
  std::string first;
  for (const int world : {1, 2, 3}) {
    const std::string text =
        predicted(world, lenet(own, {"predict.average=flip", "predict.top_k=3"}));
    if (world == 1) first = text;
    EXPECT_EQ(text, first) << world << " ranks";
  }
  const nlohmann::json line = nlohmann::json::parse(first.substr(0, first.find('\n')));
  const auto largest = std::ranges::max_element(means[0]) - means[0].begin();
  EXPECT_EQ(line.at("class"), largest);
  EXPECT_NEAR(line.at("probability"), means[0][largest], 1e-6);
  EXPECT_EQ(line.at("top").size(), 3u);
}

// Of several labels: the means of their probabilities, ranked. Of numbers: their means.
TEST_F(PredictAverage, LabelsAndNumbers_AreAveraged) {
  const GreyImage image = GreyImage::numbered(1), other = GreyImage::numbered(2);
  const auto own = written("own", {image, other});
  const auto views = written("view", {image, image.mirrored(), other, other.mirrored()});
  for (const std::vector<std::string>& keys : std::vector<std::vector<std::string>>{
           {"task=multi_label", "data.source=image_labels"},
           {"task=regression", "data.source=image_table", "data.label_type=number",
            "data.label_column=['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']"}}) {
    SCOPED_TRACE(keys[0]);
    const auto averaged = with(keys, {"predict.average=flip"});
    const Rows of = rows(1, views, keys), means = rows(2, own, averaged);
    EXPECT_NE(of[0], of[1]);
    expect_means(means, of);
    const std::string text = predicted(2, lenet(own, averaged));
    const nlohmann::json line = nlohmann::json::parse(text.substr(0, text.find('\n')));
    if (keys[0] == "task=regression") {
      for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(line.at("values")[i], means[0][i], 1e-6);
      continue;
    }
    const auto largest = std::ranges::max_element(means[0]) - means[0].begin();
    EXPECT_EQ(line.at("class"), largest);
    EXPECT_NEAR(line.at("probability"), means[0][largest], 1e-6);
  }
}

// FiveCrop and TenCrop of torchvision, of an image that is resized to its own size.
TEST_F(PredictAverage, Crops_AreThoseOfTorchvision) {
  const GreyImage image = GreyImage::numbered(2, 35, 33);
  std::vector<GreyImage> views;
  for (const GreyImage& from : {image, image.mirrored()}) {
    // The centre: round(7 / 2) = 4 and round(5 / 2) = 2, halves to even.
    for (const auto& [top, left] :
         std::vector<std::pair<int, int>>{{0, 0}, {0, 5}, {7, 0}, {7, 5}, {4, 2}}) {
      views.push_back(from.crop(top, left, 28));
    }
  }
  const auto own = written("own", {image}), ten = written("view", views);
  const std::vector<std::string> five(ten.begin(), ten.begin() + 5);
  const std::string resize = "data.eval.resize=33";
  expect_means(rows(1, own, {resize, "predict.average=five_crop"}), rows(1, five, {}));
  expect_means(rows(2, own, {resize, "predict.average=ten_crop"}), rows(1, ten, {}));
}

TEST_F(PredictAverage, Embeddings_AreAveragedThenScaled) {
  const GreyImage image = GreyImage::numbered(1);
  const auto own = written("own", {image}), views = written("view", {image, image.mirrored()});
  const std::vector<std::string> features = {"predict.embedding=features"};
  const Rows of = rows(1, views, features);
  const Rows mean = rows(1, own, with(features, {"predict.average=flip"}));
  expect_means(mean, of);
  const Rows scaled =
      rows(1, own, with(features, {"predict.average=flip", "predict.normalize=true"}));
  double squares = 0;
  for (const float value : mean[0]) squares += double(value) * value;
  for (size_t i = 0; i < mean[0].size(); ++i) {
    EXPECT_NEAR(scaled[0][i], mean[0][i] / std::sqrt(squares), 1e-6);
  }
}

TEST_F(PredictAverage, DamagedImage_IsOneLine) {
  write_file_atomically(path_of("b.png"), "no image");
  const auto own = written("own", {GreyImage::numbered(0), GreyImage::numbered(1)});
  for (const int world : {1, 2}) {
    std::istringstream text(
        predicted(world, lenet({own[0], path_of("b.png"), own[1]}, {"predict.average=flip"})));
    std::vector<bool> fails;
    for (std::string line; std::getline(text, line);) {
      fails.push_back(nlohmann::json::parse(line).contains("error"));
    }
    EXPECT_EQ(fails, (std::vector<bool>{false, true, false}));
  }
}

TEST_F(PredictAverage, CropsOfNothing_AreRefused) {
  const auto own = written("own", {GreyImage::numbered(0)});
  EXPECT_THAT(refusal(lenet(own, {"predict.average=five_crop"})), IsUsageError("predict.average"));
  EXPECT_THAT(refusal(lenet(own, {"predict.average=ten_crop", "data.eval.crop_pct=0.9",
                                  "data.eval.crop_mode=border"})),
              IsUsageError("predict.average"));
}

}  // namespace
}  // namespace fleet
