// Weights of timm and torchvision: their names and shapes, what belongs to them, and other sizes
// and channels of images (scripts/make_golden_weights.py).
#include "train/image_weights.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "models/model.h"
#include "tests/errors.h"
#include "tests/test_paths.h"
#include "train/initial_weights.h"
#include "train/network_of_weights.h"
#include "train/position_grid.h"
#include "train/pretrained_job.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fleet::Json& golden_weights() {
  static const fleet::Json all =
      fleet::Json::parse(read_file(source_folder() + "/tests/golden/weights.json"));
  return all;
}

// As scripts/make_golden_weights.py: of the sorted lines "NAME [SHAPE]".
std::string hash_of(const std::vector<LayoutTensor>& tensors) {
  std::set<std::string> lines;
  for (const LayoutTensor& tensor : tensors) {
    if (!tensor.name.empty()) lines.insert(tensor.name + " " + tensor.shape.text());
  }
  uint64_t value = 0xcbf29ce484222325;
  const auto add = [&](char byte) { value = (value ^ static_cast<uint8_t>(byte)) * 0x100000001b3; };
  bool first = true;
  for (const std::string& line : lines) {
    if (!first) add('\n');
    first = false;
    for (const char byte : line) add(byte);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<LayoutTensor> flat(const LayoutNames& names) {
  std::vector<LayoutTensor> all;
  for (const auto& [ours, parts] : names) all.insert(all.end(), parts.begin(), parts.end());
  return all;
}

std::string text_of(const std::vector<LayoutTensor>& tensors) {
  std::string text;
  for (const LayoutTensor& tensor : tensors) text += tensor.name + " " + tensor.shape.text() + "\n";
  return text;
}

HostTensor tensor_with(const Shape& shape, const std::vector<float>& values) {
  HostTensor tensor{DType::kFloat32, shape, TensorBytes(values.size() * sizeof(float))};
  std::memcpy(tensor.data.data(), values.data(), values.size() * sizeof(float));
  return tensor;
}

HostTensor counted_tensor(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 8;
  return tensor_with(shape, values);
}

std::vector<float> floats_in(const HostTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(float));
  return values;
}

TEST(WeightLayouts, NamesAndShapes_AreThoseOfTimm) {
  for (const std::string& network : golden_weights().at("names").at("timm").keys()) {
    if (!model_registry().find(network)) continue;
    const fleet::Json& wanted = golden_weights().at("names").at("timm").at(network);
    const WeightLayout* layout = find_weight_layout(network);
    ASSERT_NE(layout, nullptr) << network;
    const auto tensors = flat(timm_tensors(*layout, tensors_of_network(network_program(network))));
    EXPECT_EQ(hash_of(tensors), wanted.at("hash").get<std::string>()) << network << "\n"
                                                                      << text_of(tensors);
    const auto name = wanted.at("name").get<std::string>();
    EXPECT_EQ(network_named(name + ".tag"), model_registry().find(name) ? name : network);
  }
}

TEST(WeightLayouts, NamesAndShapes_AreThoseOfTorchvision) {
  for (const std::string& network : golden_weights().at("names").at("torchvision").keys()) {
    if (!model_registry().find(network)) continue;
    std::vector<LayoutTensor> tensors;
    for (const auto& [name, shape] : tensors_of_network(network_program(network))) {
      tensors.push_back({name, shape});
    }
    const fleet::Json& wanted = golden_weights().at("names").at("torchvision").at(network);
    EXPECT_EQ(hash_of(tensors), wanted.at("hash").get<std::string>()) << network << "\n"
                                                                      << text_of(tensors);
  }
}

// A network of embeddings has no last layer. Its other tensors keep their names in timm.
TEST(WeightLayouts, NetworkWithoutItsHead_HasTheSameNames) {
  for (const std::string& network : golden_weights().at("names").at("timm").keys()) {
    if (!model_registry().find(network)) continue;
    const WeightLayout& layout = *find_weight_layout(network);
    const Program program = network_program(network);
    TensorShapes ours = tensors_of_network(program);
    LayoutNames wanted = timm_tensors(layout, ours);
    for (const char* end : {".weight", ".bias"}) {
      ours.erase(last_layer(program) + end);
      wanted.erase(last_layer(program) + end);
    }
    EXPECT_EQ(text_of(flat(timm_tensors(layout, ours))), text_of(flat(wanted))) << network;
  }
}

// A file under timm's names becomes one under ours, with our shapes.
TEST(ImageWeights, FileOfTimm_GetsOurNamesAndShapes) {
  for (const char* network : {"resnet18", "convnext_tiny", "efficientnet_b0", "mobilenet_v2",
                              "mobilenet_v3_small", "vit_b_32", "vgg11_bn"}) {
    const Program program = network_program(network);
    const WeightLayout& layout = *find_weight_layout(network);
    const TensorShapes ours = tensors_of_network(program);
    TensorFile file;
    for (const LayoutTensor& tensor : flat(timm_tensors(layout, ours))) {
      file.tensors["module." + tensor.name] = {DType::kFloat32, tensor.shape, {}};  // no values
    }
    fit_image_weights(layout, program, "file", {}, &file);
    for (const auto& [name, shape] : ours) {
      const bool plain = file.tensors.contains(name);
      const std::string found = plain ? name : "module." + name;  // resnet18: names are the same
      ASSERT_TRUE(file.tensors.contains(found)) << network << " " << name;
      EXPECT_EQ(file.tensors.at(found).shape, shape) << network << " " << name;
    }
    EXPECT_EQ(file.tensors.size(), ours.size()) << network;
  }
}

// lukemelas' and Meta's spellings.
TEST(ImageWeights, OtherSpellings_AreRead) {
  const WeightLayout& convnext = *find_weight_layout("convnext_tiny");
  const std::pair<const char*, const char*> kMeta[] = {
      {"downsample_layers.0.0.weight", "stem.0.weight"},
      {"downsample_layers.2.1.bias", "stages.2.downsample.1.bias"},
      {"stages.2.8.dwconv.weight", "stages.2.blocks.8.conv_dw.weight"},
      {"stages.0.1.pwconv2.bias", "stages.0.blocks.1.mlp.fc2.bias"},
      {"stages.0.1.grn.gamma", "stages.0.blocks.1.mlp.grn.weight"},
      {"stages.0.1.gamma", "stages.0.blocks.1.gamma"},
      {"norm.weight", "head.norm.weight"},
      {"head.bias", "head.fc.bias"}};
  for (const auto& [theirs, timm] : kMeta) EXPECT_EQ(convnext.respelled(theirs, {}, {}), timm);

  const WeightLayout& efficientnet = *find_weight_layout("efficientnet_b0");
  const LayoutNames timm =
      timm_tensors(efficientnet, tensors_of_network(network_program("efficientnet_b0")));
  const std::vector<std::string> file = {"_blocks.3._expand_conv.weight"};
  EXPECT_EQ(efficientnet.respelled("_blocks.0._bn1.weight", timm, file), "blocks.0.0.bn1.weight");
  EXPECT_EQ(efficientnet.respelled("_blocks.3._bn1.weight", timm, file), "blocks.2.0.bn2.weight");
  EXPECT_EQ(efficientnet.respelled("_fc.bias", timm, file), "classifier.bias");

  const WeightLayout* swin = weight_layouts().find("swin");
  const std::vector<std::string> microsoft = {"layers.0.downsample.norm.weight"};
  EXPECT_EQ(swin->respelled("layers.0.downsample.norm.weight", {}, microsoft),
            "layers.1.downsample.norm.weight");
  EXPECT_EQ(swin->respelled("layers.1.downsample.norm.weight", {}, {}),
            "layers.1.downsample.norm.weight");
}

TEST(ImageWeights, Positions_AreResizedByEachLibrarysRule) {
  for (const fleet::Json& one : golden_weights().at("positions").elements()) {
    const auto table = one.at("table").get<std::vector<double>>();
    const std::vector<float> values(table.begin(), table.end());
    const int64_t from = one.at("from").get<int64_t>(), to = one.at("to").get<int64_t>();
    for (const auto& [library, rule] :
         {std::pair("timm", PositionRule::kTimm), {"torchvision", PositionRule::kTorchvision}}) {
      if (!one.contains(library)) continue;
      const auto wanted = one.at(library).get<std::vector<double>>();
      const auto width = one.at("width").get<int64_t>();
      const auto step = one.at("step").get<size_t>();
      const std::vector<float> got = resized_positions(values, one.at("prefix").get<int64_t>(),
                                                       width, {from, from}, {to, to}, rule);
      ASSERT_EQ((got.size() + step - 1) / step, wanted.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(got[i * step], wanted[i], 1e-5) << library << " " << from << " to " << to;
      }
    }
  }
}

// A network whose first layer is a convolution of 2 x 1 for images of so many channels.
Program small_convolution(int64_t channels) {
  Program program;
  program.feed("image", DType::kFloat32, {1, channels, 4, 4});
  program.parameter("conv1.weight", {2, channels, 2, 1}, {});
  program.parameter("fc.weight", {2, 2}, {});
  return program;
}

TEST(ImageWeights, FirstConvolution_IsAdaptedToChannelsAsInTimm) {
  const fleet::Json& golden = golden_weights().at("channels");
  const auto rgb = golden.at("weight").get<std::vector<double>>();
  for (const std::string& channels : golden.at("adapted").keys()) {
    const int64_t count = std::stoll(channels);
    TensorFile file;
    file.tensors["conv1.weight"] = tensor_with({2, 3, 2, 1}, {rgb.begin(), rgb.end()});
    file.tensors["fc.weight"] = counted_tensor({2, 2});
    fit_image_weights(*find_weight_layout("resnet18"), small_convolution(count), "file", {}, &file);
    const HostTensor& fitted = file.tensors.at("conv1.weight");
    ASSERT_EQ(fitted.shape, (Shape{2, count, 2, 1}));
    const auto wanted = golden.at("adapted").at(channels).get<std::vector<double>>();
    const std::vector<float> got = floats_in(fitted);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << channels;
  }
}

// The last layer starts anew if the record names it; without one, the message has both shapes and
// the key.
TEST(ImageWeights, HeadOfOtherClasses_StartsAnewIfTheRecordNamesIt) {
  Program program;
  program.feed("image", DType::kFloat32, {1, 3, 4, 4});
  program.parameter("conv1.weight", {2, 3, 2, 1}, {});
  program.parameter("fc.weight", {5, 2}, {});
  program.parameter("fc.bias", {5}, {});
  TensorFile file;
  file.tensors["conv1.weight"] = counted_tensor({2, 3, 2, 1});
  file.tensors["fc.weight"] = counted_tensor({7, 2});
  file.tensors["fc.bias"] = counted_tensor({7});
  PretrainedRecord record{.library = WeightsLibrary::kTimm, .architecture = "resnet18"};
  record.classifier = {"fc"};
  const auto lines =
      check_weights(file, "file", {.network = "resnet18", .record = record}, program);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("'fc'"), HasSubstr("7"), HasSubstr("5"))));
  const std::string message =
      usage_failure([&] { check_weights(file, "file", {.network = "resnet18"}, program); });
  EXPECT_THAT(message, AllOf(HasSubstr("[7"), HasSubstr("[5"), HasSubstr("weights_skip"),
                             HasSubstr("'fc.*'")));
  // Outside training it would have random values.
  EXPECT_NE(usage_failure([&] {
              check_weights(file, "file",
                            {.complete = true, .network = "resnet18", .record = record}, program);
            }),
            "");
}

TEST(PretrainedRecord, ConfigsOfTimm_GiveWhatTimmTakesFromThem) {
  for (const fleet::Json& one : golden_weights().at("configs").elements()) {
    const auto record = record_in(one.at("config"));
    ASSERT_TRUE(record);
    const fleet::Json& wanted = one.at("resolved");
    EXPECT_EQ(record->image, wanted.at("input_size").get<std::vector<int64_t>>());
    EXPECT_EQ(record->mean, wanted.at("mean").get<std::vector<double>>()) << record->architecture;
    EXPECT_EQ(record->std, wanted.at("std").get<std::vector<double>>()) << record->architecture;
    EXPECT_EQ(record->interpolation, wanted.at("interpolation").get<std::string>());
    EXPECT_EQ(record->crop_pct, wanted.at("crop_pct").get<double>()) << record->architecture;
    EXPECT_EQ(record->crop_mode.empty() ? "center" : record->crop_mode,
              wanted.at("crop_mode").get<std::string>());
    EXPECT_EQ(record->classes, one.at("num_classes").get<int64_t>());
    // Older folders have the fields at top level.
    fleet::Json old = one.at("config").at("pretrained_cfg");
    old["architecture"] = record->architecture;
    old["num_classes"] = record->classes;
    EXPECT_EQ(record_in(old)->mean, record->mean);
  }
}

TEST(PretrainedRecord, WrittenAndRead_IsTheSame) {
  const PretrainedRecord record{.library = WeightsLibrary::kOwn,
                                .architecture = "resnet18",
                                .classes = 5,
                                .image = {3, 64, 96},
                                .mean = {0.5, 0.25, 0.125},
                                .std = {1},
                                .interpolation = "bicubic",
                                .crop_pct = 0.875,
                                .crop_mode = "squash",
                                .classifier = {"fc"},
                                .model_keys = {{"width", "32"}}};
  EXPECT_EQ(record_in(json_of(record)), record);
  for (const char* text : {"{}", "[1]", R"({"architecture": 3})"}) {
    EXPECT_EQ(record_in(fleet::Json::parse(text)), std::nullopt) << text;
  }
  const auto odd = record_in(fleet::Json::parse(
      R"({"architecture": "x", "mean": "a", "input_size": [3, -1, 4], "crop_pct": 70, "crop_mode": 1})"));
  EXPECT_TRUE(odd->mean.empty() && odd->image.empty() && odd->crop_pct == 0);
}

TEST(PretrainedRecord, HashInTheName_SelectsTorchvisionsRecipe) {
  const auto old = torchvision_record("0676ba61"), today = torchvision_record("11ad3fa6");
  ASSERT_TRUE(old && today);
  EXPECT_EQ(old->architecture, "resnet50");
  EXPECT_EQ(old->resize, 256);
  EXPECT_EQ(today->resize, 232);
  EXPECT_EQ(torchvision_record("c8f2d3e1"), std::nullopt);
}

class WeightsFolder : public ::testing::Test {
 protected:
  WeightsFolder() { fs::create_directories(folder_); }
  ~WeightsFolder() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    write_file_atomically(folder_ + "/" + name, text);
  }
  // The tree of a job with these weights after derive_from_weights().
  ConfigTree derived(const std::string& weights, const std::string& more = "") {
    ConfigTree tree =
        ConfigTree::from_json(R"({"checkpoint": {"weights": ")" + weights +
                                  R"("}, "data": {"source": "image_folder", "root": ")" + root_ +
                                  "/photos\"" + more + "}}",
                              "job.json");
    keys_ = derive_from_weights(&tree);
    return tree;
  }

  const std::string root_ = ::testing::TempDir() + "/weights_folder_" + std::to_string(::getpid());
  const std::string folder_ = root_ + "/resnet18.a1_in1k";
  DerivedKeys keys_;
};

constexpr char kConfigOfResnet[] = R"({"architecture": "resnet18", "num_classes": 1000,
  "pretrained_cfg": {"tag": "a1_in1k", "input_size": [3, 224, 224], "interpolation": "bicubic",
                     "crop_pct": 0.95, "crop_mode": "center", "mean": [0.5, 0.5, 0.5],
                     "std": [0.25, 0.25, 0.25], "classifier": "fc"}})";

TEST_F(WeightsFolder, FilesOfAFolder_AreChosenInTimmsOrder) {
  EXPECT_NE(usage_failure([&] { weights_file(folder_); }), "");
  std::string before;
  for (const char* name : {"z.bin", "a.pth.tar", "b.pth", "x.safetensors", "model.pth",
                           "pytorch_model.bin", "model.safetensors"}) {
    write(name, "x");
    EXPECT_EQ(weights_file(folder_), folder_ + "/" + name);
  }
}

TEST_F(WeightsFolder, ConfigThatIsNoJson_IsRefused) {
  write("config.json", R"({"architecture": "vit_ti)");
  write("model.safetensors", "x");
  EXPECT_THAT(thrown_by([&] { derived(folder_); }), IsUsageError(folder_ + "/config.json"));
}

TEST_F(WeightsFolder, KeysThatTheJobLeavesOut_FollowFromTheFolder) {
  write("config.json", kConfigOfResnet);
  write("model.safetensors", "x");
  for (const char* name : {"cat", "dog", "owl"}) fs::create_directories(root_ + "/photos/" + name);
  const ConfigTree tree = derived(folder_, R"(, "std": [1, 1, 1])");
  const auto value = [&](const char* key) { return tree.peek(key).value_or("none"); };
  EXPECT_EQ(value("model.name"), "resnet18");
  EXPECT_EQ(value("model.num_classes"), "3");
  EXPECT_EQ(value("data.mean"), "[0.5,0.5,0.5]");
  EXPECT_EQ(tree.origin("data.mean"), folder_ + "/config.json");
  EXPECT_EQ(value("data.std"), "[1,1,1]");  // the job's
  EXPECT_EQ(value("data.interpolation"), "bicubic");
  EXPECT_EQ(value("data.eval.crop_pct"), "0.95");
  EXPECT_EQ(value("data.image.height"), "224");
  EXPECT_EQ(value("data.train.folder"), ".");
  EXPECT_EQ(value("data.validation_split"), "0.1");
  EXPECT_THAT(keys_.lines, Contains(HasSubstr("model.name = resnet18")));
  EXPECT_THAT(keys_.warnings, IsEmpty());
  make_job(tree);  // it is complete
}

TEST_F(WeightsFolder, FolderOfOneClass_IsRefused) {
  write("config.json", kConfigOfResnet);
  write("model.safetensors", "x");
  fs::create_directories(root_ + "/photos/train/cat");
  EXPECT_THAT(thrown_by([&] { derived(folder_); }), IsUsageError(root_ + "/photos/train"));
  fs::create_directories(root_ + "/photos/train/dog");
  EXPECT_EQ(derived(folder_).peek("model.num_classes"), "2");
}

// Networks that differ from one here in a key.
TEST_F(WeightsFolder, PatchAndWindows_FollowFromTheArchitecture) {
  using Keys = std::map<std::string, std::string>;
  const auto keys_of = [&](const std::string& architecture, const std::string& more = "") {
    write("config.json", R"({"architecture": ")" + architecture + "\"" + more + "}");
    const ConfigTree tree = derived(folder_);
    Keys keys;
    for (const char* key : {"name", "patch", "window", "window_rule", "trained_windows"}) {
      const auto value = tree.peek("model." + std::string(key));
      if (value) keys[key] = *value;
    }
    return keys;
  };
  write_safetensors(folder_ + "/model.safetensors", {});
  EXPECT_EQ(keys_of("vit_small_patch32_224.augreg_in21k"),
            (Keys{{"name", "vit_small_patch16_224"}, {"patch", "32"}}));
  EXPECT_EQ(keys_of("vit_base_patch32_224"), (Keys{{"name", "vit_b_32"}}));
  EXPECT_EQ(keys_of("deit3_small_patch16_224", R"(, "model_args": {"patch_size": 8})"),
            (Keys{{"name", "deit3_small_patch16_224"}, {"patch", "8"}}));
  EXPECT_EQ(keys_of("deit3_small_patch16_224", R"(, "model_args": {"patch_size": [8, 8]})"),
            (Keys{{"name", "deit3_small_patch16_224"}, {"patch", "8"}}));
  EXPECT_THAT(thrown_by([&] {
                keys_of("deit3_small_patch16_224", R"(, "model_args": {"patch_size": [8, 16]})");
              }),
              IsUsageError(folder_ + "/config.json"));
  EXPECT_EQ(keys_of("swin_base_patch4_window12_384"),
            (Keys{{"name", "swin_b"}, {"window", "12"}, {"window_rule", "timm"}}));
  EXPECT_EQ(keys_of("swinv2_base_window12to24_192to384"),
            (Keys{{"name", "swin_v2_b"},
                  {"window", "24"},
                  {"window_rule", "timm"},
                  {"trained_windows", "[12,12,12,6]"}}));
  const std::string none = R"(, "model_args": {"pretrained_window_sizes": [0, 0, 0, 0]})";
  EXPECT_EQ(keys_of("swinv2_tiny_window8_256", none).count("trained_windows"), 0);  // timm's "none"
}

TEST_F(WeightsFolder, TestFolders_ReplaceTheValidationPart) {
  write("config.json", kConfigOfResnet);
  write("model.safetensors", "x");
  fs::create_directories(root_ + "/photos/train/cat");
  fs::create_directories(root_ + "/photos/train/dog");
  fs::create_directories(root_ + "/photos/val/cat");
  const ConfigTree tree = derived(folder_);
  EXPECT_EQ(tree.peek("data.train.folder"), std::nullopt);
  EXPECT_EQ(tree.peek("data.test.folder"), "val");
  EXPECT_EQ(tree.peek("data.validation_split"), std::nullopt);
}

TEST_F(WeightsFolder, UnknownNetwork_IsRefusedWithTheNearestNames) {
  write("config.json", R"({"architecture": "resnet26t", "pretrained_cfg": {}})");
  write("model.safetensors", "x");
  EXPECT_THAT(usage_failure([&] { derived(folder_); }),
              AllOf(HasSubstr("resnet26t"), HasSubstr("resnet18")));
  write("config.json", R"({"model_type": "bert", "architectures": ["BertModel"]})");
  EXPECT_THAT(usage_failure([&] { derived(folder_); }), HasSubstr("transformers"));
}

// Names and shapes, without values.
TensorFile outline_under_timms_names(const std::string& network, const std::string& keys,
                                     const Shape& image = {}) {
  const Settings settings =
      ConfigTree::from_json(keys, "test").validate(model_registry().get(network).schema);
  const TensorShapes ours = tensors_of_network(network_program(network, &settings, image));
  TensorFile file;
  for (const LayoutTensor& tensor : flat(timm_tensors(*find_weight_layout(network), ours))) {
    if (!tensor.name.empty()) file.tensors[tensor.name] = {DType::kFloat32, tensor.shape, {}};
  }
  return file;
}

std::map<std::string, std::string> keys_by_shapes(const std::string& network,
                                                  const TensorFile& file) {
  TensorShapes shapes;
  for (const auto& [name, tensor] : file.tensors) shapes[name] = tensor.shape;
  return find_weight_layout(network)->keys_of_file(network, shapes);
}

TEST(NetworkOfWeights, PatchAndWindows_FollowFromTheShapes) {
  using Keys = std::map<std::string, std::string>;
  const TensorFile usual = outline_under_timms_names("vit_b_32", "{}");
  EXPECT_EQ(network_of_weights(usual), "vit_b_32");
  EXPECT_EQ(keys_by_shapes("vit_b_32", usual), Keys());
  const TensorFile swin = outline_under_timms_names("swin_t", R"({"window": 12})", {3, 384, 384});
  EXPECT_EQ(network_of_weights(swin), "swin_t");
  EXPECT_EQ(keys_by_shapes("swin_t", swin), (Keys{{"window", "12"}, {"window_rule", "timm"}}));
}

// Without a record, the shapes tell the patch; a job may ask for another one.
TEST_F(WeightsFolder, Patch_FollowsFromTheShapesUnlessTheJobSetsIt) {
  const std::string path = root_ + "/mine.safetensors";
  TensorFile file = outline_under_timms_names("vit_tiny_patch16_224", R"({"patch": 8})");
  for (auto& [name, tensor] : file.tensors) tensor = counted_tensor(tensor.shape);
  write_safetensors(path, file);
  const ConfigTree own = derived(path);
  EXPECT_EQ(own.peek("model.patch"), "8");
  EXPECT_EQ(own.peek("model.name"), "deit_tiny_patch16_224");  // the same network
  ConfigTree other = ConfigTree::from_json(R"({"checkpoint": {"weights": ")" + path +
                                               R"("}, "model": {"name": "vit_tiny_patch16_224",
                                               "patch": 16}})",
                                           "job.json");
  derive_from_weights(&other);
  EXPECT_EQ(other.peek("model.patch"), "16");
}

// With a patch that no network can have.
TEST_F(WeightsFolder, PatchThatIsTooLarge_IsRefusedInOneLine) {
  const std::string path = root_ + "/mine.safetensors";
  TensorFile file = outline_under_timms_names("vit_tiny_patch16_224", R"({"patch": 8})");
  for (auto& [name, tensor] : file.tensors) {
    if (name == "patch_embed.proj.weight") tensor.shape[2] = tensor.shape[3] = 300;
    tensor = counted_tensor(tensor.shape);
  }
  write_safetensors(path, file);
  const Error error = thrown_by([&] { derived(path); });
  EXPECT_THAT(error, IsUsageError(path));
  EXPECT_THAT(error.failure(), HasSubstr("300"));
}

// torchvision has no rule for other windows.
TEST(ImageWeights, TablesOfTorchvision_AreRefusedForOtherWindows) {
  TensorFile file;
  for (const auto& [name, shape] : tensors_of_network(network_program("swin_t"))) {
    file.tensors[name] = counted_tensor(shape);
  }
  const Settings settings = ConfigTree::from_json(R"({"window": 12})", "test")
                                .validate(model_registry().get("swin_t").schema);
  const Program program = network_program("swin_t", &settings);
  EXPECT_THAT(thrown_by([&] { check_weights(file, "file", {.network = "swin_t"}, program); }),
              ::testing::AllOf(IsUsageError("file"), Advises(HasSubstr("model.window=7"))));
}

TEST(PretrainedRecord, FilesOfDinov2_AreKnownByTheirNames) {
  const std::map<std::string, std::string> none;
  const auto record = find_record("x/dinov2_vits14_reg4_pretrain.pth", &none);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->architecture, "vit_small_patch14_reg4_dinov2");
  EXPECT_EQ(record->classes, 0);
  EXPECT_EQ(find_record("dinov2_vitb14_pretrain.pth", &none)->architecture,
            "vit_base_patch14_dinov2");
  EXPECT_EQ(find_record("dinov2_vitg14_pretrain.pth", &none), std::nullopt);
}

// timm's own name of a network is that of its export.
TEST(WeightLayouts, ExportedNames_AreOfTheDefaultSize) {
  for (const char* name : {"vit_tiny_patch16_224", "vit_base_patch16_224", "deit_base_patch16_224",
                           "deit3_small_patch16_224"}) {
    EXPECT_EQ(timm_network(name), name);
  }
  EXPECT_EQ(timm_network("vit_l_16"), "vit_large_patch16_224");
  EXPECT_EQ(timm_network("swin_b"), "swin_base_patch4_window7_224");
}

// Weights without a record: the network by names and shapes, mean and std by a guess.
TEST_F(WeightsFolder, PlainFile_IsRecognizedAndWarnsOfItsGuess) {
  TensorFile file;
  const Program program = network_program("resnet18");
  for (const auto& [name, shape] : tensors_of_network(program)) {
    file.tensors[name] = counted_tensor(shape);
  }
  file.tensors["fc.weight"] = counted_tensor({7, 512});
  file.tensors["fc.bias"] = counted_tensor({7});
  const std::string path = root_ + "/mine.safetensors";
  write_safetensors(path, file);
  const ConfigTree tree = derived(path);
  EXPECT_EQ(tree.peek("model.name"), "resnet18");
  EXPECT_EQ(tree.peek("data.mean"), "[0.485,0.456,0.406]");
  EXPECT_THAT(keys_.warnings, ElementsAre(AllOf(HasSubstr("data.mean"), HasSubstr("data.std"),
                                                HasSubstr("guess"))));
  derived(path, R"(, "mean": 0.5, "std": 0.5)");
  EXPECT_THAT(keys_.warnings, IsEmpty());
}

}  // namespace
}  // namespace fleet
