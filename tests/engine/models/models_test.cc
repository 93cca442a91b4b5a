#include <gtest/gtest.h>

#include <set>

#include "models/model.h"
#include "models/training.h"

namespace fleet {
namespace {

struct Built {
  Program program;
  Training training;
};

Built build(const std::string& model, const std::string& json = "{}", int64_t batch = 2,
            Shape image = {}) {
  Built built;
  const ModelDef& def = model_registry().get(model);
  built.training = build_training(
      built.program, {.model = model,
                      .model_settings = ConfigTree::from_json(json, "test").validate(def.schema),
                      .batch = batch,
                      .columns = image_columns(image.rank() ? image : def.image)});
  return built;
}

struct Count {
  int64_t tensors = 0, elements = 0;
  bool operator==(const Count&) const = default;
};
void PrintTo(const Count& count, std::ostream* out) {
  *out << count.tensors << " tensors, " << count.elements << " elements";
}

Count parameters_of(const Program& program) {
  Count count;
  for (VarId id : program.parameters()) {
    ++count.tensors;
    count.elements += program.var(id).shape.elements();
  }
  return count;
}

Count count(const std::string& model, const std::string& json = "{}") {
  return parameters_of(build(model, json).program);
}

// torchvision's counts where it has the model.
TEST(Models, Default_HaveTheKnownNumberOfParameters) {
  EXPECT_EQ(count("resnet18"), (Count{62, 11689512}));
  EXPECT_EQ(count("resnet34"), (Count{110, 21797672}));
  EXPECT_EQ(count("resnet50"), (Count{161, 25557032}));
  EXPECT_EQ(count("resnet101"), (Count{314, 44549160}));
  EXPECT_EQ(count("vgg16"), (Count{32, 138357544}));
  EXPECT_EQ(count("vgg16", R"({"batch_norm": true})"), (Count{58, 138365992}));
  EXPECT_EQ(count("vgg11"), (Count{22, 132863336}));
  EXPECT_EQ(count("vgg13"), (Count{26, 133047848}));
  EXPECT_EQ(count("vgg19"), (Count{38, 143667240}));
  EXPECT_EQ(count("vgg11_bn"), (Count{38, 132868840}));
  EXPECT_EQ(count("vgg19_bn"), (Count{70, 143678248}));
  EXPECT_EQ(count("mobilenet_v2"), (Count{158, 3504872}));
  EXPECT_EQ(count("densenet121"), (Count{364, 7978856}));
  EXPECT_EQ(count("densenet161"), (Count{484, 28681000}));
  EXPECT_EQ(count("densenet169"), (Count{508, 14149480}));
  EXPECT_EQ(count("densenet201"), (Count{604, 20013928}));
  EXPECT_EQ(count("mobilenet_v3_small"), (Count{142, 2542856}));
  EXPECT_EQ(count("mobilenet_v3_large"), (Count{174, 5483032}));
  EXPECT_EQ(count("efficientnet_b0"), (Count{213, 5288548}));
  EXPECT_EQ(count("efficientnet_b4"), (Count{418, 19341616}));
  EXPECT_EQ(count("googlenet"), (Count{173, 6624904}));
  EXPECT_EQ(count("convnext_tiny"), (Count{182, 28589128}));
  EXPECT_EQ(count("convnext_small"), (Count{344, 50223688}));
  EXPECT_EQ(count("convnext_base"), (Count{344, 88591464}));
  EXPECT_EQ(count("convnext_large"), (Count{344, 197767336}));
  EXPECT_EQ(count("vit_b_16"), (Count{152, 86567656}));
  EXPECT_EQ(count("vit_b_32"), (Count{152, 88224232}));
  EXPECT_EQ(count("vit_l_16"), (Count{296, 304326632}));
  EXPECT_EQ(count("swin_t"), (Count{173, 28288354}));
  EXPECT_EQ(count("swin_s"), (Count{329, 49606258}));
  EXPECT_EQ(count("swin_b"), (Count{329, 87768224}));
  EXPECT_EQ(count("swin_v2_t"), (Count{209, 28351570}));
  EXPECT_EQ(count("swin_v2_s"), (Count{401, 49737442}));
  EXPECT_EQ(count("swin_v2_b"), (Count{401, 87930848}));
  EXPECT_EQ(count("mobilenet_v1"), (Count{83, 4231976}));
  EXPECT_EQ(count("resnet20"), (Count{65, 272474}));
  EXPECT_EQ(count("lenet"), (Count{10, 61706}));
  EXPECT_EQ(count("mlp"), (Count{6, 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10}));
}

TEST(Models, VisionTransformersOfTimm_HaveItsNumberOfParameters) {
  EXPECT_EQ(count("vit_tiny_patch16_224"), (Count{152, 5717416}));
  EXPECT_EQ(count("vit_small_patch16_224"), (Count{152, 22050664}));
  EXPECT_EQ(count("vit_base_patch16_224"), (Count{152, 86567656}));
  EXPECT_EQ(count("deit_tiny_patch16_224"), (Count{152, 5717416}));
  EXPECT_EQ(count("deit_small_patch16_224"), (Count{152, 22050664}));
  EXPECT_EQ(count("deit_base_patch16_224"), (Count{152, 86567656}));
  EXPECT_EQ(count("deit_tiny_distilled_patch16_224"), (Count{155, 5910800}));
  EXPECT_EQ(count("deit_small_distilled_patch16_224"), (Count{155, 22436432}));
  EXPECT_EQ(count("deit_base_distilled_patch16_224"), (Count{155, 87338192}));
  EXPECT_EQ(count("deit3_small_patch16_224"), (Count{176, 22059496}));
  EXPECT_EQ(count("deit3_base_patch16_224"), (Count{176, 86585320}));
  const auto headless = [](const std::string& model, int64_t width) {
    return count(model, R"({"num_classes": 1})").elements - width - 1;
  };
  EXPECT_EQ(headless("vit_small_patch14_dinov2", 384), 22056192);
  EXPECT_EQ(headless("vit_small_patch14_reg4_dinov2", 384), 22057344);
  EXPECT_EQ(headless("vit_base_patch14_dinov2", 768), 86579712);
  EXPECT_EQ(headless("vit_base_patch14_reg4_dinov2", 768), 86582016);
}

// torchvision's and timm's counts (of timm: resnet*d, convnextv2_*, tf_efficientnet_lite*,
// mobilenetv4_conv_*, and the small sizes of convnext).
TEST(Models, ConvolutionalNetworksSince2016_HaveTheKnownNumberOfParameters) {
  EXPECT_EQ(count("resnet152"), (Count{467, 60192808}));
  EXPECT_EQ(count("resnext50_32x4d"), (Count{161, 25028904}));
  EXPECT_EQ(count("resnext101_32x8d"), (Count{314, 88791336}));
  EXPECT_EQ(count("resnext101_64x4d"), (Count{314, 83455272}));
  EXPECT_EQ(count("wide_resnet50_2"), (Count{161, 68883240}));
  EXPECT_EQ(count("wide_resnet101_2"), (Count{314, 126886696}));
  EXPECT_EQ(count("regnet_y_400mf"), (Count{225, 4344144}));
  EXPECT_EQ(count("regnet_y_800mf"), (Count{199, 6432512}));
  EXPECT_EQ(count("regnet_y_1_6gf"), (Count{368, 11202430}));
  EXPECT_EQ(count("regnet_y_3_2gf"), (Count{290, 19436338}));
  EXPECT_EQ(count("regnet_y_8gf"), (Count{238, 39381472}));
  EXPECT_EQ(count("efficientnet_b5"), (Count{506, 30389784}));
  EXPECT_EQ(count("efficientnet_b6"), (Count{584, 43040704}));
  EXPECT_EQ(count("efficientnet_b7"), (Count{711, 66347960}));
  EXPECT_EQ(count("efficientnet_v2_s"), (Count{452, 21458488}));
  EXPECT_EQ(count("efficientnet_v2_m"), (Count{649, 54139356}));
  EXPECT_EQ(count("efficientnet_v2_l"), (Count{897, 118515272}));
  EXPECT_EQ(count("resnet18d"), (Count{68, 11708744}));
  EXPECT_EQ(count("resnet26d"), (Count{95, 16014408}));
  EXPECT_EQ(count("resnet34d"), (Count{116, 21816904}));
  EXPECT_EQ(count("resnet50d"), (Count{167, 25576264}));
  EXPECT_EQ(count("resnet101d"), (Count{320, 44568392}));
  EXPECT_EQ(count("resnet152d"), (Count{473, 60212040}));
  EXPECT_EQ(count("convnext_atto"), (Count{128, 3695520}));
  EXPECT_EQ(count("convnext_femto"), (Count{128, 5217784}));
  EXPECT_EQ(count("convnext_pico"), (Count{128, 9045672}));
  EXPECT_EQ(count("convnext_nano"), (Count{146, 15593560}));
  EXPECT_EQ(count("convnext_v2_atto"), (Count{140, 3708400}));
  EXPECT_EQ(count("convnext_v2_femto"), (Count{140, 5233240}));
  EXPECT_EQ(count("convnext_v2_pico"), (Count{140, 9066280}));
  EXPECT_EQ(count("convnext_v2_nano"), (Count{160, 15623800}));
  EXPECT_EQ(count("convnext_v2_tiny"), (Count{200, 28635496}));
  EXPECT_EQ(count("convnext_v2_base"), (Count{380, 88717800}));
  EXPECT_EQ(count("convnext_v2_large"), (Count{380, 197956840}));
  EXPECT_EQ(count("efficientnet_lite0"), (Count{149, 4652008}));
  EXPECT_EQ(count("efficientnet_lite1"), (Count{194, 5416680}));
  EXPECT_EQ(count("efficientnet_lite2"), (Count{194, 6092072}));
  EXPECT_EQ(count("efficientnet_lite3"), (Count{221, 8197096}));
  EXPECT_EQ(count("efficientnet_lite4"), (Count{275, 13006568}));
  EXPECT_EQ(count("mobilenet_v4_conv_small"), (Count{140, 3774024}));
  EXPECT_EQ(count("mobilenet_v4_conv_medium"), (Count{233, 9715512}));
}

// The models that turn an image into a class.
std::vector<std::string> classifiers() {
  std::vector<std::string> names = model_registry().names();
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with("test_") ||
           model_registry().get(name).inputs != std::vector<std::string>{"image"} ||
           model_registry().get(name).outputs != std::vector<std::string>{"logits"};
  });
  return names;
}

TEST(Models, EveryClassifier_GivesLogitsOfItsClasses) {
  for (const std::string& name : classifiers()) {
    const Built built = build(name, R"({"num_classes": 7})", 3);
    EXPECT_EQ(built.program.var(built.training.output("logits")).shape, (Shape{3, 7})) << name;
    EXPECT_EQ(built.program.var(built.training.evaluate_output("logits")).shape, (Shape{3, 7}))
        << name;
  }
}

TEST(Models, EveryClassifier_PrintsTheSameTextTwice) {
  for (const std::string& name : classifiers()) {
    EXPECT_EQ(print_text(build(name).program), print_text(build(name).program)) << name;
  }
}

TEST(Models, Unknown_NamesTheNearest) {
  try {
    model_registry().get("resnet5O");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("resnet50"), std::string::npos) << error.what();
  }
}

TEST(Models, ImageTooSmall_IsAUsageError) {
  try {
    build("lenet", "{}", 2, {1, 8, 8});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
  }
}

TEST(Mlp, HiddenLayerOfNothing_IsAUsageError) {
  EXPECT_THROW(build("mlp", R"({"hidden": [16, 0]})"), Error);
}

TEST(Mlp, NoHiddenLayer_IsLinear) {
  EXPECT_EQ(count("mlp", R"({"hidden": []})"), (Count{2, 7850}));
}

std::vector<std::string> names_of(const Program& program, VarKind kind) {
  std::vector<std::string> names;
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (program.var(id).kind == kind) names.push_back(program.var(id).name);
  }
  return names;
}

TEST(Resnet, Parameters_HaveTorchvisionsNames) {
  const Program program = build("resnet50").program;
  for (const char* name :
       {"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer1.0.bn3.bias",
        "layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias", "layer2.3.conv2.weight",
        "layer4.2.conv3.weight", "fc.weight", "fc.bias"}) {
    const VarId id = program.find(name);
    ASSERT_NE(id, kNoVar) << name;
    EXPECT_EQ(program.var(id).kind, VarKind::kParameter) << name;
  }
  for (const char* name : {"bn1.running_mean", "layer3.0.downsample.1.running_var"}) {
    ASSERT_NE(program.find(name), kNoVar) << name;
    EXPECT_EQ(program.var(program.find(name)).kind, VarKind::kState) << name;
  }
  EXPECT_EQ(names_of(program, VarKind::kState).size(), 2u * 53);
  EXPECT_EQ(program.find("layer1.1.downsample.0.weight"), kNoVar);
}

// v1.5: the stride is in the 3x3.
TEST(Resnet, Bottleneck_StridesInItsSecondConvolution) {
  const Program program = build("resnet50").program;
  const VarId weight = program.find("layer2.0.conv2.weight");
  int readers = 0;
  for (const Op& op : program.ops()) {
    if (op.type() != "conv2d" || op.inputs[1] != weight) continue;
    ++readers;
    EXPECT_EQ(op.attributes.integers("strides"), (std::vector<int64_t>{2, 2}));
  }
  EXPECT_EQ(readers, 2);  // training and evaluation
}

TEST(Resnet, ZeroInitResidual_SetsTheLastScaleOfEachBlock) {
  const Program zero = build("resnet18", R"({"zero_init_residual": true})").program;
  EXPECT_EQ(zero.var(zero.find("layer1.0.bn2.weight")).init.a, 0);
  EXPECT_EQ(zero.var(zero.find("layer1.0.bn1.weight")).init.a, 1);
  const Program one = build("resnet18").program;
  EXPECT_EQ(one.var(one.find("layer1.0.bn2.weight")).init.a, 1);
}

TEST(Vgg, Parameters_HaveTorchvisionsNames) {
  const Program plain = build("vgg16").program;
  EXPECT_EQ(plain.var(plain.find("features.28.weight")).shape, (Shape{512, 512, 3, 3}));
  EXPECT_EQ(plain.var(plain.find("classifier.0.weight")).shape, (Shape{4096, 25088}));
  EXPECT_NE(plain.find("classifier.6.bias"), kNoVar);
  const Program normed = build("vgg16", R"({"batch_norm": true})").program;
  EXPECT_EQ(normed.var(normed.find("features.40.weight")).shape, (Shape{512, 512, 3, 3}));
  EXPECT_EQ(normed.var(normed.find("features.41.running_mean")).shape, (Shape{512}));
}

TEST(Vgg, DoubleImage_IsPooledToTheSameClassifier) {
  const Program program = build("vgg16", "{}", 1, {3, 448, 448}).program;
  EXPECT_EQ(program.var(program.find("classifier.0.weight")).shape, (Shape{4096, 25088}));
}

// The attributes of each operation of this type.
template <typename Read>
auto attributes_of(const Program& program, const std::string& type, const Read& read) {
  std::vector<decltype(read(program.ops()[0].attributes))> values;
  for (const Op& op : program.ops()) {
    if (op.type() == type) values.push_back(read(op.attributes));
  }
  return values;
}

std::set<double> epsilons_of(const std::string& model, const std::string& json) {
  const auto all = attributes_of(build(model, json).program, "batch_norm",
                                 [](const Attributes& a) { return a.number("epsilon"); });
  return {all.begin(), all.end()};
}

TEST(BatchNorm, Epsilon_IsTheNetworksOrThatOfTheKey) {
  EXPECT_EQ(epsilons_of("efficientnet_b5", "{}"), (std::set<double>{1e-3}));
  EXPECT_EQ(epsilons_of("mobilenet_v3_small", R"({"batch_norm_epsilon": 1e-5})"),
            (std::set<double>{1e-5}));
  EXPECT_EQ(epsilons_of("resnet18", R"({"batch_norm_epsilon": 1e-3})"), (std::set<double>{1e-3}));
}

std::set<std::vector<int64_t>> paddings_of(const std::string& model, const std::string& json,
                                           const Shape& image) {
  const auto all = attributes_of(build(model, json, 1, image).program, "conv2d",
                                 [](const Attributes& a) { return a.integers("paddings"); });
  return {all.begin(), all.end()};
}

// ceil(size / 2) outputs: of 64 pixels more padding behind, of 65 the same on both sides.
TEST(SamePadding, PaddingsFollowTheSizeOfTheImage) {
  using Paddings = std::set<std::vector<int64_t>>;
  EXPECT_EQ(paddings_of("efficientnet_lite0", "{}", {3, 64, 64}),
            (Paddings{{0, 0}, {0, 0, 1, 1}, {1, 1}, {1, 1, 2, 2}, {2, 2}}));
  EXPECT_EQ(paddings_of("efficientnet_lite0", "{}", {3, 65, 65}),
            (Paddings{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(paddings_of("efficientnet_lite0", "{}", {3, 64, 65}).count({0, 1, 1, 1}), 1U);
  EXPECT_EQ(paddings_of("efficientnet_lite0", R"({"same_padding": false})", {3, 64, 64}),
            (Paddings{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(paddings_of("efficientnet_b0", R"({"same_padding": true})", {3, 64, 64}),
            (Paddings{{0, 0}, {0, 0, 1, 1}, {1, 1}, {1, 1, 2, 2}, {2, 2}}));
}

TEST(MobilenetV1, Width_ScalesChannels) {
  const Program program = build("mobilenet_v1", R"({"width": 0.25})").program;
  EXPECT_EQ(program.var(program.find("conv1.weight")).shape, (Shape{8, 3, 3, 3}));
  EXPECT_EQ(program.var(program.find("fc.weight")).shape, (Shape{1000, 256}));
}

}  // namespace
}  // namespace fleet
