// Text models as ONNX: batch and length stay open, and onnxruntime computes the same.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/file.h"
#include "onnx/export.h"
#include "onnx/network.h"
#include "proto/onnx.pb.h"
#include "tensor/host.h"
#include "tests/golden/golden.h"
#include "tests/test_paths.h"
#include "train/job.h"

namespace fleet {
namespace {

namespace pb = onnx_proto;

struct TextModel {
  const char* name;
  const char* keys;  // of the model
  std::set<std::string> outputs;
};

const std::set<std::string> kNextToken = {"hidden", "head"},
                            kMaskedTokens = {"masked_hidden", "head", "head_bias"};
constexpr char kBertKeys[] = R"("vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 24)";
constexpr char kLlamaKeys[] = R"("vocab_size": 31, "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 20)";

const std::vector<TextModel>& text_models() {
  static const std::string gelu = std::string(kLlamaKeys) + R"(, "hidden_act": "gelu",
      "rope_parameters": {"rope_type": "llama3", "factor": 4, "high_freq_factor": 4,
                          "original_max_position_embeddings": 8})";
  static const std::string window = std::string(kLlamaKeys) + R"(, "sliding_window": 3)";
  static const std::string heads = std::string(kLlamaKeys) + R"(, "head_dim": 8)";
  static const std::vector<TextModel> all = {
      {"bert", kBertKeys, {"logits"}},
      {"bert", kBertKeys, {"masked_hidden", "head", "head_bias", "next_sentence_logits"}},
      {"roberta", kBertKeys, {"token_logits"}},
      {"distilbert",
       R"("vocab_size": 31, "dim": 12, "n_layers": 1, "n_heads": 3, "hidden_dim": 20)",
       {"span_logits"}},
      {"bert", kBertKeys, kMaskedTokens},
      {"roberta", kBertKeys, kMaskedTokens},
      {"distilbert",
       R"("vocab_size": 31, "dim": 12, "n_layers": 1, "n_heads": 3, "hidden_dim": 20)",
       kMaskedTokens},
      {"llama", kLlamaKeys, kNextToken},
      {"llama", gelu.c_str(), kNextToken},
      {"mistral", window.c_str(), kNextToken},
      {"qwen3", heads.c_str(), kNextToken},
      {"gpt2", R"("vocab_size": 31, "n_embd": 12, "n_head": 3, "n_layer": 1, "n_positions": 24)",
       kNextToken}};
  return all;
}

Job job_of(const TextModel& model) {
  const std::string json = std::string(R"({"model": {"name": ")") + model.name + R"(", )" +
                           model.keys + R"(}, "data": {"source": "synthetic"},
      "optimizer": {"name": "sgd"}, "learning_rate": {"name": "constant", "base": 0.1}})";
  return make_job(ConfigTree::from_json(json, "test"));
}

constexpr int64_t kVocabulary = 31, kMasked = 2;

// The inputs of texts of different lengths: those of the file, and those of our network.
struct TextInputs {
  TextInputs(int64_t batch, int64_t length) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t real = std::max<int64_t>(length - 2 * b, 2);
      for (int64_t i = 0; i < length; ++i) {
        const bool padded = i >= real;
        values["input_ids"].push_back((7 * b + 3 * i * i + 5) % kVocabulary);
        values["token_type_ids"].push_back(i % 2);
        values["attention_mask"].push_back(padded ? 0 : 1);
        values["document_ids"].push_back(padded ? -1 : 0);
        values["position_ids"].push_back(padded ? real - 1 : i);
      }
      for (int64_t m = 0; m < kMasked; ++m) values["masked_positions"].push_back((b + m) % 2);
    }
  }
  std::map<std::string, std::vector<int64_t>> values;
};

// Rows of rows of numbers, as in numpy.
template <typename T>
nlohmann::json nested(const std::vector<T>& values, const Shape& shape, int axis = 0,
                      size_t first = 0) {
  nlohmann::json all = nlohmann::json::array();
  size_t stride = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) stride *= static_cast<size_t>(shape[d]);
  for (int64_t i = 0; i < shape[axis]; ++i) {
    const size_t at = first + static_cast<size_t>(i) * stride;
    if (axis == shape.rank() - 1) {
      all.push_back(values[at]);
    } else {
      all.push_back(nested(values, shape, axis + 1, at));
    }
  }
  return all;
}

class TextExport : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/text_onnx_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const TextModel& model() const { return text_models()[GetParam()]; }

  // Our network of this size with the weights of tests/golden/golden.h.
  std::unique_ptr<Executor> executor_of(int64_t batch, int64_t length, OnnxNetwork* network) {
    *network = text_network(job_of(model()), model().outputs, batch, length, kMasked);
    const std::vector<VarId> results = network->results();
    auto executor = std::make_unique<Executor>(plan_program(std::move(network->program), results),
                                               device_, nullptr);
    const Program& program = executor->program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (is_saved(var)) executor->write(id, golden::tensor(var.name, var.shape));
    }
    return executor;
  }

  std::string exported() {
    OnnxNetwork network;
    const auto executor = executor_of(1, 1, &network);
    return text_onnx_file(job_of(model()), model().outputs, *executor);
  }

  // A case for check_text_onnx.py: the inputs of the file, and our outputs.
  void write_case(int64_t batch, int64_t length, const std::string& path) {
    OnnxNetwork network;
    const auto executor = executor_of(batch, length, &network);
    const Program& program = executor->program();
    const TextInputs inputs(batch, length);
    for (const auto& [name, values] : inputs.values) {
      const VarId feed = program.find(name);
      if (feed != kNoVar) executor->feed(feed, values);
    }
    executor->run({.evaluate = true});
    executor->synchronize();
    nlohmann::json written = {{"inputs", nlohmann::json::object()},
                              {"outputs", nlohmann::json::object()}};
    for (const OnnxPort& port : network.inputs) {
      const int64_t size = port.name == "masked_positions" ? kMasked : length;
      written["inputs"][port.name] = nested(inputs.values.at(port.name), Shape{batch, size});
    }
    for (const OnnxPort& port : network.outputs) {
      written["outputs"][port.name] =
          nested(executor->values<float>(port.var), program.var(port.var).shape);
    }
    write_file_atomically(path, written.dump());
  }

  std::string folder_;
  HostDevice device_;
};

TEST_P(TextExport, LeavesBatchAndLengthOpen) {
  pb::ModelProto file;
  ASSERT_TRUE(file.ParseFromString(exported()));
  for (const auto& input : file.graph().input()) {
    const auto& shape = input.type().tensor_type().shape();
    EXPECT_EQ(shape.dim(0).dim_param(), "batch");
    EXPECT_FALSE(shape.dim(1).dim_param().empty()) << input.name();
  }
  for (const auto& tensor : file.graph().initializer()) {
    if (tensor.data_type() != pb::TensorProto::INT64) continue;
    std::vector<int64_t> values(tensor.raw_data().size() / sizeof(int64_t));
    std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
    for (const int64_t value : values) EXPECT_TRUE(value == 0 || value % kOnnxBatch != 0) << value;
  }
}

TEST_P(TextExport, RunsInOnnxruntime) {
  const auto python = get_env("FLEET_ONNX_PYTHON");
  if (!python) GTEST_SKIP() << "FLEET_ONNX_PYTHON names no Python with onnx and onnxruntime";
  write_file_atomically(folder_ + "/net.onnx", exported());
  write_case(3, 11, folder_ + "/long.json");
  write_case(1, 5, folder_ + "/short.json");
  const std::string command = *python + " " + source_folder() +
                              "/tests/engine/onnx/check_text_onnx.py " + folder_ +
                              "/net.onnx 1e-4 " + folder_ + "/long.json " + folder_ + "/short.json";
  EXPECT_EQ(std::system(command.c_str()), 0) << model().name;
}

INSTANTIATE_TEST_SUITE_P(Models, TextExport, ::testing::Range<size_t>(0, text_models().size()));

}  // namespace
}  // namespace fleet
