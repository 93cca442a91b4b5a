#include "onnx/export.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/env.h"
#include "base/file.h"
#include "models/model.h"
#include "models/training.h"
#include "onnx/exporter.h"
#include "onnx/network.h"
#include "proto/onnx.pb.h"
#include "tensor/host.h"
#include "tests/errors.h"
#include "tests/golden/golden.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

// Makes a folder with weights a complete checkpoint.
void write_state(const std::string& folder, const std::string& model) {
  write_file_atomically(folder + "/state.json",
                        R"({"version": 1, "step": 4, "epoch": 0, "batch": 0, "seed": 1,
                            "global_batch": 1, "model": ")" +
                            model + "\"}");
}

namespace pb = onnx_proto;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Integers = std::vector<int64_t>;

// Operations and attributes that the built-in models do not use.
FLEET_MODEL(test_odd_operations) {
  def.schema = model_schema();
  def.image = {3, 11, 14};
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    VarId x = network.pool(
        image, {.type = "avg", .kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true});
    x = network.apply("pool2d", {x},
                      {{"type", std::string("avg")},
                       {"kernel", Integers{2, 3}},
                       {"paddings", Integers{1, 1}},
                       {"exclusive", false}});
    x = network.pool(x, {.kernel = 3, .stride = 2, .ceil_mode = true});
    const VarId shift = network.parameter("shift", {3}, init::constant(0));
    x = network.apply("elementwise_sub", {x, shift}, {{"axis", int64_t{1}}});
    x = network.apply("scale", {x}, {{"scale", 3.0}, {"bias", -0.5}});
    x = network.apply("gelu", {x}, {{"approximate", true}});
    const VarId product = network.apply("matmul", {x, x}, {{"transpose_x", true}});
    const VarId other = network.apply("matmul", {x, x}, {{"transpose_y", true}});
    x = network.concat({network.flatten(product), network.flatten(other)});
    x = network.apply("softmax", {network.activation("tanh", x)}, {{"axis", int64_t{1}}});
    const VarId half = network.apply("fill", {}, {{"shape", Integers{1}}, {"value", 0.5}});
    x = network.apply("elementwise_add", {x, half});
    x = network.reshape(network.linear("text", x, {.features = 16}), {0, 2, 8});
    const VarId scale = network.parameter("text_scale", {8}, init::constant(1));
    const VarId normed = network.apply("rms_norm", {x, scale});
    x = network.apply("add_rms_norm", {x, normed, scale});
    x = network.apply("add_layer_norm", {x, normed, scale, scale});
    x = network.flatten(network.apply("swiglu", {x}));
    return network.linear("head", x, {.features = 10, .bias = false});
  });
}

FLEET_MODEL(test_without_exporter) {
  def.schema = model_schema();
  def.image = {1, 4, 4};
  def.build = image_classifier([](Network& network, VarId image, const Settings&) {
    const VarId x = network.flatten(image);
    const VarId one = network.apply("elementwise_div", {x, x});
    return network.linear("head", one, {.features = 10});
  });
}

// A model with the weights of tests/golden/golden.h.
class Exported : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/onnx_test_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // in_file: further settings of the job file.
  static Job job_of(const std::string& model, const std::vector<std::string>& overrides = {},
                    const std::vector<std::pair<std::string, std::string>>& in_file = {}) {
    ConfigTree tree =
        ConfigTree::from_json(R"({"model": {"name": ")" + model + R"(", "num_classes": 10},
            "data": {"source": "synthetic", "mean": [0.5, 0.25, 0.125], "std": [0.2]},
            "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 0.1}})",
                              "test");
    for (const auto& [key, value] : in_file) tree.set(key, value, "test");
    apply_overrides(tree, overrides);
    return make_job(tree);
  }

  struct Net {
    VarId image, logits;
    std::unique_ptr<Executor> executor;
  };
  Net net_of(const Job& job, const Shape& image, int64_t batch) {
    Program program;
    const SectionId section =
        program.add_section("evaluate", {.training = false, .evaluation = true});
    Net net;
    net.image = program.feed("image", DType::kFloat32, {batch, image[0], image[1], image[2]});
    Network network(program, section, false, kNoVar);
    net.logits = model_registry()
                     .get(job.model_name)
                     .build(network, {{"image", net.image}}, job.model)
                     .at("logits");
    net.executor = std::make_unique<Executor>(plan_program(std::move(program), {net.logits}),
                                              device_, nullptr);
    const Program& planned = net.executor->program();
    for (VarId id = 0; id < planned.var_count(); ++id) {
      const Var& var = planned.var(id);
      if (!is_saved(var)) continue;
      net.executor->write(id, golden::tensor(var.name, var.shape));
    }
    return net;
  }

  pb::ModelProto exported(const std::string& model) {
    const Job job = job_of(model);
    const Shape image = model_registry().get(model).image;
    pb::ModelProto parsed;
    EXPECT_TRUE(parsed.ParseFromString(onnx_file(job, image, *net_of(job, image, 1).executor)));
    return parsed;
  }

  void write(const std::string& name, const void* data, size_t bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }

  static void save(const Executor& executor, const std::string& path, const ModelCard& card = {}) {
    TensorFile weights;
    std::vector<std::vector<float>> values;
    const Program& program = executor.program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (!is_saved(var)) continue;
      values.push_back(golden::tensor(var.name, var.shape));
      weights.tensors[var.name] = {
          DType::kFloat32, var.shape,
          TensorBytes::view(values.back().data(), values.back().size() * sizeof(float))};
    }
    write_card(card, &weights.metadata);
    write_safetensors(path, weights);
  }

  // Three samples, through onnxruntime and through this engine. tolerance: of the largest value.
  void expect_same_outputs(const std::string& model, Shape image) {
    expect_same_outputs(job_of(model), image, "1e-4");
  }
  void expect_same_outputs(const Job& job, Shape image, const std::string& tolerance) {
    const auto python = get_env("FLEET_ONNX_PYTHON");
    if (!python) GTEST_SKIP() << "FLEET_ONNX_PYTHON names no Python with onnx and onnxruntime";
    const Shape batch = {3, image[0], image[1], image[2]};
    Net net = net_of(job, image, 3);
    const std::vector<float> images = golden::tensor("input", batch);
    net.executor->feed(net.image, images);
    net.executor->run({.evaluate = true});
    const std::vector<float> logits = net.executor->values<float>(net.logits);
    const std::string file = onnx_file(job, image, *net.executor);
    write("net.onnx", file.data(), file.size());
    write("images", images.data(), images.size() * sizeof(float));
    write("logits", logits.data(), logits.size() * sizeof(float));
    const std::string command = *python + " " + source_folder() +
                                "/tests/engine/onnx/check_onnx.py " + folder_ + "/net.onnx " +
                                folder_ + "/images " + folder_ + "/logits " + tolerance;
    EXPECT_EQ(std::system(command.c_str()), 0) << job.model_name;
  }

  std::string folder_;
  HostDevice device_;
};

TEST_F(Exported, EveryModel_HasExportersOfItsOperations) {
  for (const std::string& name : model_registry().names()) {
    if (name == "test_without_exporter") continue;
    const ModelDef& def = model_registry().get(name);
    if (def.inputs != std::vector<std::string>{"image"}) continue;
    Program program;
    const SectionId section = program.add_section("evaluate", {.evaluation = true});
    const VarId image =
        program.feed("image", DType::kFloat32, {2, def.image[0], def.image[1], def.image[2]});
    Network network(program, section, false, kNoVar);
    def.build(network, {{"image", image}},
              ConfigTree::from_json("{}", "test").validate(def.schema));
    for (const Op& op : program.ops()) {
      EXPECT_TRUE(onnx_exporter_registry().find(op.type())) << name << ": " << op.type();
    }
  }
}

TEST_F(Exported, Lenet_HasAnOpenBatchAndItsWeights) {
  const pb::ModelProto model = exported("lenet");
  EXPECT_EQ(model.opset_import(0).version(), kOnnxOperatorSet);
  const pb::GraphProto& graph = model.graph();
  ASSERT_EQ(graph.input_size(), 1);
  EXPECT_EQ(graph.input(0).name(), "image");
  const auto& shape = graph.input(0).type().tensor_type().shape();
  EXPECT_EQ(shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(shape.dim(1).dim_value(), 1);
  EXPECT_EQ(shape.dim(2).dim_value(), 28);
  ASSERT_EQ(graph.output_size(), 1);
  EXPECT_EQ(graph.output(0).name(), "logits");
  EXPECT_EQ(graph.output(0).type().tensor_type().shape().dim(1).dim_value(), 10);
  int found = 0;
  for (const pb::TensorProto& tensor : graph.initializer()) {
    if (tensor.name() != "fc3.weight") continue;
    ++found;
    EXPECT_THAT(tensor.dims(), ElementsAre(10, 84));
    const std::vector<float> want = golden::tensor("fc3.weight", {10, 84});
    EXPECT_EQ(tensor.raw_data(),
              std::string(reinterpret_cast<const char*>(want.data()), want.size() * sizeof(float)));
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(model.metadata_props(1).key(), "mean");
  EXPECT_EQ(model.metadata_props(1).value(), "0.5,0.25,0.125");
}

// No constant of the graph has the batch that it was built for.
TEST_F(Exported, VitB16_LeavesTheBatchOpen) {
  const Job job = job_of("vit_b_16");
  const std::string file = onnx_file(job, {3, 32, 32}, *net_of(job, {3, 32, 32}, 1).executor);
  pb::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(file));
  for (const pb::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != pb::TensorProto::INT64) continue;
    Integers values(tensor.raw_data().size() / sizeof(int64_t));
    std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
    for (const int64_t value : values) EXPECT_TRUE(value == 0 || value % kOnnxBatch != 0) << value;
  }
}

TEST_F(Exported, OperationWithoutExporter_IsNamed) {
  try {
    exported("test_without_exporter");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("ONNX has no equivalent of elementwise_div"));
  }
}

TEST_F(Exported, WithoutWeights_SaysWhereItLooked) {
  try {
    export_onnx(job_of("lenet", {"train.output=" + folder_ + "/none"}), folder_ + "/net.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("/none/checkpoints: there is no checkpoint yet"));
  }
}

TEST_F(Exported, WeightsOfAFile_AreThoseWritten) {
  const Job job = job_of(
      "lenet", {"checkpoint.weights=" + source_folder() + "/tests/golden/lenet.safetensors"});
  const std::string line = export_onnx(job, folder_ + "/net.onnx");
  EXPECT_THAT(line, HasSubstr("lenet for images of [1, 28, 28]"));
  pb::ModelProto model;
  std::ifstream file(folder_ + "/net.onnx", std::ios::binary);
  ASSERT_TRUE(model.ParseFromIstream(&file));
  EXPECT_EQ(model.SerializeAsString(), exported("lenet").SerializeAsString());
}

// Where train.ema is set the average that evaluations see, of the newest checkpoint.
TEST_F(Exported, RunWithAnAverage_IsItsAverage) {
  const std::string checkpoint = folder_ + "/checkpoints/step_00000004/";
  std::filesystem::create_directories(checkpoint);
  TensorFile weights = read_safetensors(source_folder() + "/tests/golden/lenet.safetensors");
  write_safetensors(checkpoint + "model.safetensors", weights);
  write_state(checkpoint, "lenet");
  std::vector<float> ones(10, 1);
  weights.tensors.at("fc3.bias").data = TensorBytes::view(ones.data(), ones.size() * sizeof(float));
  write_safetensors(checkpoint + "ema.safetensors", weights);
  const auto bias_of = [&](const std::vector<std::string>& overrides) {
    export_onnx(job_of("lenet", overrides), folder_ + "/net.onnx");
    pb::ModelProto model;
    std::ifstream file(folder_ + "/net.onnx", std::ios::binary);
    EXPECT_TRUE(model.ParseFromIstream(&file));
    for (const pb::TensorProto& tensor : model.graph().initializer()) {
      if (tensor.name() == "fc3.bias") return tensor.raw_data();
    }
    return std::string();
  };
  const std::string average(reinterpret_cast<const char*>(ones.data()), 40);
  EXPECT_EQ(bias_of({"train.output=" + folder_, "train.ema=0.9"}), average);
  EXPECT_EQ(bias_of({"train.output=" + folder_}), average);  // as --predict
  EXPECT_NE(bias_of({"checkpoint.weights=" + checkpoint + "model.safetensors"}), average);
  EXPECT_EQ(bias_of({"checkpoint.resume=" + checkpoint, "train.ema=0.9"}), average);
}

// A network that takes other sizes than the one it is made for: what the weights' file says counts.
TEST_F(Exported, WeightsThatTellTheirImage_GiveItAndTheirClasses) {
  save(*net_of(job_of("mobilenet_v2"), {3, 48, 40}, 1).executor, folder_ + "/w.safetensors",
       {.classes = {"cat", "dog"}, .image = {3, 48, 40}});
  export_onnx(job_of("mobilenet_v2", {"checkpoint.weights=" + folder_ + "/w.safetensors"}),
              folder_ + "/net.onnx");
  pb::ModelProto model;
  std::ifstream file(folder_ + "/net.onnx", std::ios::binary);
  ASSERT_TRUE(model.ParseFromIstream(&file));
  EXPECT_EQ(model.graph().input(0).type().tensor_type().shape().dim(3).dim_value(), 40);
  std::map<std::string, std::string> metadata;
  for (const auto& entry : model.metadata_props()) metadata[entry.key()] = entry.value();
  EXPECT_EQ(metadata.at("classes"), R"(["cat","dog"])");
  EXPECT_EQ(metadata.at("std"), "0.2");
}

class FineTuned : public Exported, public ::testing::WithParamInterface<const char*> {};

// The job file still names the weights from which training started, and the head that was new.
TEST_P(FineTuned, HasTheWeightsOfItsTraining) {
  const std::string model = GetParam(), start = folder_ + "/start.safetensors";
  const Shape image = model_registry().get(model).image;
  save(*net_of(job_of(model), image, 1).executor, start);
  const Job job = job_of(model, {},
                         {{"model.num_classes", "3"},
                          {"checkpoint.weights", start},
                          {"checkpoint.weights_skip", "[\"fc*\"]"},
                          {"train.output", folder_}});
  const auto refusal = thrown_by([&] { export_onnx(job, folder_ + "/net.onnx"); });
  EXPECT_THAT(refusal, IsUsageError(start));  // nothing is trained yet
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/net.onnx"));
  const std::string checkpoint = folder_ + "/checkpoints/step_00000004";
  std::filesystem::create_directories(checkpoint);
  const ModelCard card{.classes = {"cat", "dog", "eel"}, .image = {}};
  Net net = net_of(job, image, 1);
  save(*net.executor, checkpoint + "/model.safetensors", card);
  write_state(checkpoint, GetParam());
  EXPECT_THAT(export_onnx(job, folder_ + "/net.onnx"), HasSubstr("the weights of " + checkpoint));
  EXPECT_EQ(read_file(folder_ + "/net.onnx"), onnx_file(job, image, *net.executor, card));
}

TEST_P(FineTuned, GivesItsLogitsInOnnxruntime) {
  const Job job = job_of(GetParam(), {"model.num_classes=3"});
  expect_same_outputs(job, model_registry().get(GetParam()).image, "1e-5");
}

INSTANTIATE_TEST_SUITE_P(Models, FineTuned, ::testing::Values("lenet", "resnet18"));

TEST_F(Exported, ClassNamesOfTheJob_AreThoseOfTheFile) {
  const auto classes_of = [&](const std::string& names) {
    export_onnx(job_of("lenet", {"checkpoint.weights=" + folder_ + "/w.safetensors",
                                 "model.num_classes=2", "data.class_names=" + names}),
                folder_ + "/net.onnx");
    pb::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(read_file(folder_ + "/net.onnx")));
    for (const auto& entry : model.metadata_props()) {
      if (entry.key() == "classes") return entry.value();
    }
    return std::string();
  };
  Net net = net_of(job_of("lenet", {"model.num_classes=2"}), {1, 28, 28}, 1);
  save(*net.executor, folder_ + "/w.safetensors");
  EXPECT_EQ(classes_of("['cat', 'dog']"), R"(["cat","dog"])");
  save(*net.executor, folder_ + "/w.safetensors", {.classes = {"cat", "dog"}, .image = {}});
  EXPECT_EQ(classes_of("[]"), R"(["cat","dog"])");
  EXPECT_THAT(thrown_by([&] { classes_of("['dog', 'cat']"); }),
              IsUsageError(folder_ + "/w.safetensors"));
}

TEST_F(Exported, OddOperations_RunInOnnxruntime) {
  expect_same_outputs("test_odd_operations", {3, 11, 14});
}
TEST_F(Exported, Lenet_RunsInOnnxruntime) { expect_same_outputs("lenet", {1, 28, 28}); }

class Network64 : public Exported, public ::testing::WithParamInterface<const char*> {};

TEST_P(Network64, RunsInOnnxruntime) { expect_same_outputs(GetParam(), {3, 64, 64}); }

TEST_F(Exported, Dinov2WithRegisters_RunsInOnnxruntime) {
  expect_same_outputs("vit_small_patch14_reg4_dinov2", {3, 28, 28});
}

INSTANTIATE_TEST_SUITE_P(Models, Network64,
                         ::testing::Values("resnet18", "mobilenet_v1", "mobilenet_v2",
                                           "mobilenet_v3_small", "mobilenet_v3_large",
                                           "efficientnet_b0", "vgg11_bn", "densenet121",
                                           "googlenet", "convnext_tiny", "vit_b_16",
                                           "deit_tiny_distilled_patch16_224", "swin_t", "swin_v2_t",
                                           "resnext50_32x4d", "resnet18d", "regnet_y_400mf",
                                           "efficientnet_v2_s", "efficientnet_lite0",
                                           "convnext_v2_atto", "mobilenet_v4_conv_small"),
                         [](const auto& model) { return std::string(model.param); });

TEST(OnnxExport, Norms_HaveTheEpsilonOfTheModel) {
  const Job job = make_job(ConfigTree::from_json(
      R"({"model": {"name": "resnet18", "num_classes": 4, "batch_norm_epsilon": 0.25}})", "test"));
  int norms = 0;
  const OnnxNetwork network = image_network(job, {3, 64, 64}, 1);
  for (const Op& op : network.program.ops()) {
    if (op.type() != "batch_norm") continue;
    ++norms;
    EXPECT_EQ(op.attributes.number("epsilon"), 0.25);
  }
  EXPECT_EQ(norms, 20);
}

}  // namespace
}  // namespace fleet
