// Weights that were made for other windows, patches or images: the logits are those of timm with
// the weights changed by the rule of their library (scripts/make_golden_sizes.py).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "exec/executor.h"
#include "models/model.h"
#include "tensor/host.h"
#include "tests/golden/golden.h"
#include "train/dinov2_weights.h"
#include "train/image_weights.h"
#include "train/initial_weights.h"
#include "train/network_of_weights.h"
#include "train/pretrained_job.h"
#include "train/tensor_values.h"

namespace fleet {
namespace {

const nlohmann::json& other_sizes() {
  static const auto all =
      nlohmann::json::parse(read_file(source_folder() + "/tests/golden/other_sizes.json"));
  return all;
}

Settings settings_with(const std::string& model, nlohmann::json keys) {
  keys["num_classes"] = 10;
  return ConfigTree::from_json(keys.dump(), "test").validate(model_registry().get(model).schema);
}

std::vector<float> scaled_golden(const std::string& name, const Shape& shape) {
  std::vector<float> values = golden::tensor(name, shape);
  if (name.ends_with("pos_embed")) {
    for (float& value : values) value *= other_sizes().at("positions").get<float>();
  }
  return values;
}

// timm's name in the words of the authors of Swin and of DINOv2.
std::string spelled_by_authors(const std::string& origin, bool chunks, std::string name) {
  if (origin == "microsoft") {
    const size_t at = name.find(".downsample.");
    if (at != std::string::npos) name[at - 1] = static_cast<char>(name[at - 1] - 1);
    replace_start({{"head.fc.", "head."}}, &name);
  }
  if (origin == "meta") {
    replace_start({{"reg_token", "register_tokens"}}, &name);
    if (chunks && name.starts_with("blocks.")) {
      name.insert(7, std::to_string(std::stoll(name.substr(7)) / 3) + ".");
    }
  }
  return name;
}

// The file of a network with these keys, for these images, as its library names it.
TensorFile file_of_source(const nlohmann::json& one) {
  const std::string model = one.at("model"), origin = one.at("origin");
  const auto image = one.at("source_image").get<std::vector<int64_t>>();
  const Settings settings = settings_with(model, one.at("source_keys"));
  const TensorShapes ours =
      tensors_of_network(network_program(model, &settings, {3, image[0], image[1]}));
  const bool registers = ours.contains("reg_token");
  TensorFile file;
  for (const auto& [own, parts] : timm_tensors(*find_weight_layout(model), ours)) {
    for (const LayoutTensor& part : parts) {
      if (part.name.empty() || (origin == "meta" && part.name.starts_with("head."))) continue;
      const std::string name = spelled_by_authors(origin, registers, part.name);
      Shape shape = part.shape;
      if (origin == "meta" && registers && name == "pos_embed") shape[1] += 1;
      file.tensors[name] = tensor_of(shape, scaled_golden(name, shape));
    }
  }
  if (origin == "meta") {
    const Shape mask = {1, ours.at("norm.weight")[0]};
    file.tensors["mask_token"] = tensor_of(mask, golden::tensor("mask_token", mask));
  }
  return file;
}

class OtherSizes : public ::testing::TestWithParam<int> {};

TEST_P(OtherSizes, Logits_AreThoseOfTheOrigin) {
  const nlohmann::json& one = other_sizes().at("cases").at(GetParam());
  const std::string model = one.at("model"), origin = one.at("origin");
  const auto image = one.at("image").get<std::vector<int64_t>>();
  const Settings settings = settings_with(model, one.at("keys"));
  Program program;
  const SectionId section =
      program.add_section("evaluate", {.training = false, .evaluation = true});
  const VarId feed = program.feed("image", DType::kFloat32, {1, 3, image[0], image[1]});
  Network network(program, section, false, kNoVar);
  network.set_wanted_outputs({"logits"});
  const NamedVars outputs = model_registry().get(model).build(
      network, {{"image", feed}, {"sample_key", kNoVar}}, settings);
  const VarId logits = outputs.at("logits");
  HostDevice device;
  Executor executor(plan_program(std::move(program), {logits}), device, nullptr);
  const std::vector<std::string> lines =
      load_weights(file_of_source(one), "file", {.skip = {}, .network = model}, executor);
  for (const char* name : {"head.weight", "head.bias"}) {
    const VarId id = executor.program().find(name);
    if (origin == "meta")
      executor.write(id, golden::tensor(name, executor.program().var(id).shape));
  }
  executor.feed(feed, golden::tensor("input", {1, 3, image[0], image[1]}));
  executor.run({.evaluate = true, .fetch = true});
  executor.synchronize();
  const auto wanted = one.at("logits").get<std::vector<double>>();
  const std::vector<float> got = executor.values<float>(logits);
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-4 * largest) << i << "\n" << ::testing::PrintToString(lines);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OtherSizes, ::testing::Range(0, 11));

TEST(Dinov2Weights, FileOfAMaskedAutoencoder_IsLeftAlone) {
  TensorFile file;
  for (const char* name : {"mask_token", "pos_embed", "cls_token", "decoder_embed.weight"}) {
    file.tensors[name] = tensor_of({1, 1, 1}, {0.0f});
  }
  EXPECT_FALSE(fit_dinov2_file(&file));
  EXPECT_TRUE(file.tensors.contains("mask_token"));
  file.tensors.erase("decoder_embed.weight");
  EXPECT_TRUE(fit_dinov2_file(&file));
}

// A checkpoint knows how its network cut windows.
TEST(OwnRecord, WindowsOfACheckpoint_AreFollowed) {
  const std::string path =
      ::testing::TempDir() + "/own_record_" + std::to_string(::getpid()) + ".safetensors";
  TensorFile file;
  file.metadata["pretrained_cfg"] =
      R"({"architecture": "swin_t", "fleetrun": true, "num_classes": 3,
          "model_keys": {"window_rule": "timm", "window": 4}})";
  write_safetensors(path, file);
  ConfigTree tree = ConfigTree::from_json(
      R"({"checkpoint": {"weights": ")" + path + R"("}, "model": {"name": "swin_t"}})", "job.json");
  derive_from_weights(&tree);
  std::filesystem::remove(path);
  EXPECT_EQ(tree.peek("model.window_rule"), "timm");
  EXPECT_EQ(tree.peek("model.window"), "4");
  EXPECT_EQ(make_job(tree).model.text("window_rule"), "timm");
}

}  // namespace
}  // namespace fleet
