// Class activation maps against those that PyTorch gives with the same weights
// (scripts/make_golden_cam.py computed them in float64).
#include "train/class_activation.h"

#include <png.h>

#include "tests/engine/train/predicting_lenet.h"
#include "tests/golden/golden.h"
#include "train/activation_pictures.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
Job job_of(const std::string& model) {
  return make_job(ConfigTree::from_json(
      R"({"model": {"name": ")" + model + R"(", "num_classes": 10}})", "test"));
}

class OfNetwork : public ::testing::TestWithParam<int> {};

TEST_P(OfNetwork, Map_IsPyTorchs) {
  const nlohmann::json golden =
      nlohmann::json::parse(read_file(source_folder() + "/tests/golden/class_activation.json"));
  const nlohmann::json& one = golden.at("cases").at(GetParam());
  const auto dims = one.at("input_shape").get<std::vector<int64_t>>();
  const auto classes = one.at("classes").get<std::vector<int64_t>>();
  HostDevice device;
  ClassActivation maps(job_of(one.at("model")), device, dims[0], {dims[1], dims[2], dims[3]});
  const Program& program = maps.executor().program();
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (is_saved(var)) maps.executor().write(id, golden::tensor(var.name, var.shape));
  }
  const std::vector<float> images = golden::tensor("input", Shape(dims));
  maps.run(std::as_bytes(std::span(images)), classes);
  for (int64_t i = 0; i < dims[0]; ++i) {
    const std::vector<float> map = maps.map(i);
    ASSERT_EQ(std::ssize(map), dims[2] * dims[3]);
    EXPECT_EQ(*std::ranges::max_element(map), 1);
    const auto values = one.at("values").at(i).get<std::vector<double>>();
    for (size_t k = 0; k < values.size(); ++k) {
      EXPECT_NEAR(map[k * one.at("step").get<size_t>()], values[k], 1e-4)
          << one.at("model") << " " << i << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OfNetwork, ::testing::Range(0, 13));

class ActivationFiles : public PredictingLenet {
 protected:
  struct Picture {
    bool grey = false;
    std::vector<uint8_t> pixels;
  };
  Picture picture(const std::string& name) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    const std::string path = output_ + "/maps/" + name;
    EXPECT_TRUE(png_image_begin_read_from_file(&image, path.c_str())) << path;
    EXPECT_EQ(image.height, 28u);
    EXPECT_EQ(image.width, 28u);
    Picture read{.grey = (image.format & PNG_FORMAT_FLAG_COLOR) == 0, .pixels = {}};
    image.format = read.grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    read.pixels.resize(PNG_IMAGE_SIZE(image));
    png_image_finish_read(&image, nullptr, read.pixels.data(), 0, nullptr);
    return read;
  }
  std::vector<std::string> with_maps(const std::vector<std::string>& more) const {
    return with({"predict.cam=" + output_ + "/maps"}, more);
  }
};

TEST_F(ActivationFiles, EachImage_GetsItsFileOnAnyNumberOfRanks) {
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    paths.push_back(path_of("p" + std::to_string(i) + ".png"));
    GreyImage::numbered(i).write(paths.back());
  }
  paths.push_back(path_of("gone.png"));
  predicted(1, lenet(paths, with_maps({})));
  std::vector<std::string> alone;
  for (int i = 0; i < 3; ++i) {
    alone.push_back(read_file(output_ + "/maps/p" + std::to_string(i) + ".png"));
  }
  EXPECT_FALSE(picture("p0.png").grey);
  EXPECT_FALSE(fs::exists(output_ + "/maps/gone.png"));
  fs::remove_all(output_ + "/maps");
  predicted(2, lenet(paths, with_maps({})));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read_file(output_ + "/maps/p" + std::to_string(i) + ".png"), alone[i]);
  }
}

TEST_F(ActivationFiles, Map_ReachesWhiteAndDependsOnTheClass) {
  const std::string path = path_of("p.png");
  GreyImage::numbered(0).write(path);
  const std::string text = predicted(1, lenet({path}, with_maps({"predict.cam_style=map"})));
  const auto predicted_class = nlohmann::json::parse(text.substr(0, text.find('\n'))).at("class");
  const Picture own = picture("p.png");
  EXPECT_TRUE(own.grey);
  EXPECT_EQ(*std::ranges::max_element(own.pixels), 255);
  const auto of_class = [&](int label) {
    predicted(1, lenet({path}, with_maps({"predict.cam_style=map",
                                          "predict.cam_class=" + std::to_string(label)})));
    return picture("p.png").pixels;
  };
  EXPECT_EQ(of_class(predicted_class), own.pixels);
  EXPECT_NE(of_class((predicted_class.get<int>() + 1) % 10), own.pixels);
}

TEST_F(ActivationFiles, EqualNames_AreNumbered) {
  EXPECT_THAT(map_names({"a/x.jpg", "b/x.png", "x", "y.jpg"}),
              ElementsAre("x.png", "x_2.png", "x_3.png", "y.png"));
}

TEST_F(ActivationFiles, WhatHasNoMap_IsRefused) {
  const std::string path = path_of("p.png");
  GreyImage::numbered(0).write(path);
  const auto code_of = [&](const std::vector<std::string>& more) {
    return refusal(lenet({path}, more)).where();
  };
  EXPECT_EQ(code_of({"predict.cam_class=1"}), "predict.cam_class");
  EXPECT_EQ(code_of(with_maps({"predict.cam_class=10"})), "predict.cam_class");
  EXPECT_EQ(code_of(with_maps({"predict.average=flip"})), "predict.cam");
  EXPECT_EQ(code_of(with_maps({"predict.embedding=features"})), "predict.cam");
  HostDevice device;
  // One place, and none.
  EXPECT_THAT(thrown_by([&] {
                ClassActivation(job_of("resnet18"), device, 1, {3, 32, 32});
              }),
              IsUsageError("predict.cam"));
  EXPECT_THAT(thrown_by([&] {
                ClassActivation(job_of("mlp"), device, 1, {1, 8, 8});
              }),
              IsUsageError("predict.cam"));
}

}  // namespace
}  // namespace fleet
