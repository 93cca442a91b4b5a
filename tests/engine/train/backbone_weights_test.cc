#include "train/backbone_weights.h"

#include <gmock/gmock.h>

namespace fleet {
namespace {

using ::testing::ElementsAre;

class Backbone : public ::testing::Test {
 protected:
  Backbone() {
    const auto add = [&](const std::string& name, const Shape& shape) {
      vars_.emplace_back();
      vars_.back().name = name;
      vars_.back().shape = shape;
    };
    add("backbone.0.0.weight", {4, 3, 1, 1});
    add("backbone.1.bias", {4});
    add("classifier.4.weight", {2, 4, 1, 1});
    for (const Var& var : vars_) pointers_.push_back(&var);
  }
  static HostTensor tensor(const Shape& shape) {
    return {DType::kFloat32, shape,
            TensorBytes(static_cast<size_t>(shape.elements()) * sizeof(float))};
  }
  static std::vector<std::string> names(const TensorFile& file) {
    std::vector<std::string> all;
    for (const auto& [name, unused] : file.tensors) all.push_back(name);
    return all;
  }

  std::vector<Var> vars_;
  std::vector<const Var*> pointers_;
};

TEST_F(Backbone, Classifier_FitsIt) {
  for (const std::string start : {"", "features.", "module."}) {
    TensorFile file;
    file.tensors[start + "0.0.weight"] = tensor({4, 3, 1, 1});
    file.tensors[start + "1.bias"] = tensor({4});
    file.tensors["classifier.3.weight"] = tensor({1000, 8});
    const BackboneFit fit = fit_backbone(pointers_, &file);
    EXPECT_THAT(names(file), ElementsAre("backbone.0.0.weight", "backbone.1.bias")) << start;
    EXPECT_THAT(fit.skipped, ElementsAre("classifier.4.weight"));
    EXPECT_EQ(fit.lines.size(), 1u);
  }
}

TEST_F(Backbone, OtherFiles_StayAsTheyAre) {
  TensorFile whole;
  whole.tensors["backbone.0.0.weight"] = tensor({4, 3, 1, 1});
  TensorFile part;
  part.tensors["0.0.weight"] = tensor({4, 3, 1, 1});
  for (TensorFile* file : {&whole, &part}) {
    const auto before = names(*file);
    EXPECT_TRUE(fit_backbone(pointers_, file).skipped.empty());
    EXPECT_EQ(names(*file), before);
  }
}

}  // namespace
}  // namespace fleet
