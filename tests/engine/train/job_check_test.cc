// Mistakes of a job file that its settings alone show, without data and other ranks.
#include "train/job_check.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "models/text/language_family.h"
#include "tests/captured_log.h"
#include "tests/errors.h"
#include "train/job.h"
#include "train/language_weights.h"
#include "train/safetensors.h"
#include "train/unused_options.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kImages[] = R"("image": {"channels": 1, "height": 28, "width": 28})";

Job lenet(const std::vector<std::string>& overrides,
          const std::string& data = std::string(R"("source": "synthetic", )") + kImages) {
  ConfigTree tree =
      ConfigTree::from_json(R"({"model": {"name": "lenet"}, "data": {)" + data + "}}", "job.json");
  apply_overrides(tree, overrides);
  return make_job(tree);
}

std::string check(const std::vector<std::string>& overrides, int ranks = 1) {
  return check_training(lenet(overrides), {.world = ranks});
}

struct Mistake {
  const char* named;  // by the error
  std::vector<std::string> overrides;
  int ranks = 1;
};

std::vector<Mistake> mistakes() {
  return {
      {"train.class_weights", {"train.class_weights=[1,2]"}},
      {"train.class_weights", {"train.class_weights={'rule': 'balanced', 'values': [1, 2]}"}},
      {"learning_rate", {"learning_rate={'name': 'piecewise', 'boundaries': [3], 'values': [1]}"}},
      {"learning_rate.name", {"learning_rate.name=plateau", "train.evaluate_every=0"}},
      {"learning_rate", {"learning_rate={'name': 'constant', 'warmup_start': 0.1}"}},
      {"train.early_stopping.metric", {"train.early_stopping.metric=foo"}},
      {"train.early_stopping", {"train.early_stopping=loss", "train.evaluate_every=0"}},
      {"checkpoint.keep_best.metric", {"checkpoint.keep_best.metric=acc4"}},
      {"data.mean", {"data.mean=[0.1,0.2]"}},
      {"data.std", {"data.std=[0.1,0.2]"}},
      {"data.image", {"data.image.height=10", "data.image.width=10"}},
      {"data.image", {"model.name=vit_b_16", "data.image.height=50", "data.image.width=50"}},
      {"data.image.channels", {"data.image.channels=2"}},
      {"data.train.classes", {"model.num_classes=3", "data.train.classes=10"}},
      {"data.test.classes", {"data.test.classes=11"}},
      {"data.validation_split", {"data.validation_split=0.1", "data.test.samples=8"}},
      {"data.shuffle", {"data.sampling=balanced", "data.shuffle=false"}},
      {"data.class_names", {"data.class_names=['a', 'b']"}},
      {"recompute_configs.checkpoints",
       {"strategy.recompute=true", "strategy.recompute_configs.checkpoints=['nothere']"}},
      {"pipeline_configs.cut",
       {"strategy.pipeline=true", "strategy.pipeline_configs.cut=['nothere']"}},
      {"pipeline_configs.cut",
       {"strategy.pipeline=true", "strategy.pipeline_configs.cut=['nothere']"},
       2},
      {"pipeline_configs.cut",
       {"strategy.pipeline=true", "strategy.pipeline_configs.cut=['fc2', 'fc1']"}},
      {"optimizer.groups",
       {"optimizer={'name': 'momentum', 'groups': ['fc3.*: rate=2']}", "strategy.lars=true"}},
      {"optimizer.groups",
       {"optimizer={'name': 'adam', 'groups': ['fc3.*: rate=2']}", "strategy.lamb=true"}},
      {"optimizer.groups", {"optimizer.groups=['fc4.*: rate=2']"}},
      {"optimizer.frozen", {"optimizer.frozen=['conv1.*', 'conv7.*']"}},
      {"optimizer.frozen", {"optimizer.frozen=['*']"}},
      {"checkpoint.weights_skip", {"checkpoint.weights_skip=['head.*']"}},
      {"train.ema.decay", {"train.ema=0.9", "strategy.pipeline=true"}, 2},
      {"train.ema.decay", {"train.ema=0.9", "optimizer={'name': 'schedule_free_adamw'}"}},
      {"optimizer.name", {"optimizer={'name': 'schedule_free_sgd'}", "strategy.pipeline=true"}, 2},
      {"optimizer.clip_exclude",
       {"optimizer={'name': 'sgd', 'clip': 'adaptive', 'clip_exclude': ['nothere.*']}"}},
      {"train.ema.decay",
       {"train.ema=0.9", "strategy.sharding=true", "strategy.sharding_configs={'stage': 3}"},
       2},
  };
}

TEST(JobCheck, MistakesThatSettingsShow_AreRefusedWithTheirKey) {
  EXPECT_THAT(check({}), IsEmpty());
  EXPECT_THAT(check({}, 2), IsEmpty());
  for (const Mistake& mistake : mistakes()) {
    SCOPED_TRACE(mistake.overrides.back());
    const Error error = thrown_by([&] { check(mistake.overrides, mistake.ranks); });
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(mistake.named));
  }
}

// What one rank does not do is no mistake of a job of one rank.
TEST(JobCheck, SettingsForSeveralRanks_AreAcceptedOnOne) {
  EXPECT_THAT(check({"train.ema=0.9", "strategy.pipeline=true"}), IsEmpty());
  EXPECT_THAT(check({"strategy.pipeline=true", "strategy.pipeline_configs.cut=['fc1']"}),
              IsEmpty());
}

TEST(JobCheck, NearPattern_IsSuggested) {
  const auto next = [](const std::vector<std::string>& overrides) {
    return thrown_by([&] { check(overrides); }).next();
  };
  EXPECT_THAT(next({"optimizer.frozen=['conv1.weigth']"}), HasSubstr("'conv1.weight'"));
  EXPECT_THAT(next({"optimizer.frozen=['conv1']"}), HasSubstr("'conv1.*'"));
  EXPECT_THAT(next({"optimizer.groups=['*.bais: rate=2']"}), HasSubstr("'*.bias'"));
  EXPECT_THAT(next({"checkpoint.weights_skip=['fc3.weigth']"}), HasSubstr("'fc3.weight'"));
  EXPECT_THAT(next({"optimizer.frozen=['transformer.*']"}), HasSubstr("conv1.weight"));
}

// A name that only the file has is what the file's own head is called.
TEST(JobCheck, SkippedNames_MayBeThoseOfTheFile) {
  const std::string path = ::testing::TempDir() + "/job_check.safetensors";
  TensorFile file;
  for (const char* name : {"module.head.weight", "module.conv1.weight"}) {
    file.tensors[name] = {DType::kFloat32, {1}, std::vector<char>(4)};
  }
  write_safetensors(path, file);
  const auto skip = [&](const std::string& pattern) {
    return std::vector<std::string>{"checkpoint.weights=" + path,
                                    "checkpoint.weights_skip=['" + pattern + "']"};
  };
  // These match names; the file lacks most of the model.
  EXPECT_THAT(thrown_by([&] { check(skip("head.*")); }), IsUsageError(path));
  EXPECT_THAT(thrown_by([&] { check(skip("module.head.*")); }), IsUsageError(path));
  EXPECT_THAT(thrown_by([&] { check(skip("tail.*")); }), IsUsageError("checkpoint.weights_skip"));
  std::filesystem::remove(path);
  EXPECT_THAT(thrown_by([&] { check(skip("fc3.*")); }), IsError(ErrorCode::kNotFound, path));
}

// Data are not opened: there are none.
TEST(JobCheck, SizeThatOnlyTheDataTell_IsNotChecked) {
  const std::string folder = R"("source": "image_folder", "root": "/nowhere")";
  const auto check = [&](const std::string& data, const std::vector<std::string>& overrides) {
    return check_training(lenet(overrides, folder + data), {});
  };
  EXPECT_THAT(check(std::string(", ") + kImages, {}), IsEmpty());
  EXPECT_THAT(check("", {}), HasSubstr("data.image.height"));
  EXPECT_THAT(check(R"(, "image": {"height": 28})", {}),
              AllOf(HasSubstr("data.image.width"), Not(HasSubstr("data.image.height"))));
  // A size that may not be the images' is no mistake.
  EXPECT_THAT(check(R"(, "image": {"height": 2})", {}), HasSubstr("data.image.width"));
  EXPECT_THAT(thrown_by([&] { check("", {"optimizer.frozen=['nothere.*']"}); }),
              IsUsageError("optimizer.frozen"));
  EXPECT_THAT(thrown_by([&] { check("", {"data.train.folder="}); }), IsUsageError("data.train"));
}

TEST(JobCheck, Prediction_NeedsOnlyTheNetwork) {
  const auto check = [](const std::vector<std::string>& overrides) {
    return check_network_only(lenet(overrides), {});
  };
  EXPECT_THAT(check({"train.early_stopping.metric=foo"}), IsEmpty());
  EXPECT_THAT(thrown_by([&] {
                check({"data.image.height=10", "data.image.width=10"});
              }).what(),
              HasSubstr("data.image"));
}

TEST(JobCheck, FolderOfHuggingFace_IsReadExceptForTensors) {
  const std::string folder = ::testing::TempDir() + "job_check_hf";
  std::filesystem::create_directories(folder);
  write_file_atomically(
      folder + "/config.json",
      R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
          "num_hidden_layers": 1, "num_attention_heads": 2, "hiden_act": "gelu"})");
  const std::string job =
      R"({"task": "causal_lm", "model": {"name": "hf", "folder": ")" + folder +
      R"("}, "data": {"source": "tokens", "root": ")" + folder +
      R"(", "train": {"file": "x.bin"}, "sequence_length": 8, "batch_size": 1, "end_of_text": "none"}})";
  write_file_atomically(folder + "/x.bin", std::string(64, '\0'));
  const auto check = [&] {
    return check_training(make_job(ConfigTree::from_json(job, "job.json")), {});
  };
  const std::string log = captured_log([&] { EXPECT_THAT(check(), IsEmpty()); });
  EXPECT_THAT(log, AllOf(HasSubstr("config.json"), HasSubstr("hiden_act")));
  const std::string index = folder + "/model.safetensors.index.json";
  write_file_atomically(index, R"({"weight_map": {"lm_head.weight": "absent.safetensors"}})");
  EXPECT_THAT(thrown_by(check), IsError(ErrorCode::kNotFound, index));
  std::filesystem::remove_all(folder);
}

// A folder with a model whose sizes are all 8, and with weights that fit it.
class WeightsInFolder : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "job_check_weights";
    std::filesystem::create_directories(folder_);
    const std::string config = GetParam() == "gpt2"
                                   ? R"({"model_type": "gpt2", "vocab_size": 8, "n_embd": 8,
          "n_inner": 8, "n_layer": 1, "n_head": 2, "n_positions": 8})"
                                   : R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
          "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2})";
    write_file_atomically(folder_ + "/config.json", config);
    write_file_atomically(folder_ + "/x.bin", std::string(64, '\0'));
    int64_t value = 0;
    for (const WeightPart& part :
         weight_parts(read_language_model(Json::parse(config), "config.json"))) {
      const bool vector = part.name.ends_with(".bias") ||
                          part.name.find("norm") != std::string::npos ||
                          part.name.find("ln_") != std::string::npos;
      const Shape shape = vector            ? Shape{part.rows}
                          : part.transposed ? Shape{8, part.rows}
                                            : Shape{part.rows, 8};
      std::vector<float> values(static_cast<size_t>(shape.elements()));
      for (float& one : values) one = static_cast<float>(value++);
      const auto* bytes = reinterpret_cast<const char*>(values.data());
      weights_.tensors[part.name] = {
          DType::kFloat32, shape, std::vector<char>(bytes, bytes + values.size() * sizeof(float))};
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Job job(const std::string& skipped = "") const {
    ConfigTree tree = ConfigTree::from_json(
        R"({"task": "causal_lm", "model": {"name": "hf", "folder": ")" + folder_ +
            R"("}, "data": {"source": "tokens", "root": ")" + folder_ +
            R"(", "train": {"file": "x.bin"}, "sequence_length": 8, "batch_size": 1,
                "end_of_text": "none"}})",
        "job.json");
    if (!skipped.empty()) apply_overrides(tree, {"checkpoint.weights_skip=['" + skipped + "']"});
    return make_job(tree);
  }
  std::string path() const { return folder_ + "/model.safetensors"; }
  void check_with(const TensorFile& file) const {
    write_safetensors(path(), file);
    check_training(job(), {});
  }

  std::string folder_;
  TensorFile weights_;
};

INSTANTIATE_TEST_SUITE_P(JobCheck, WeightsInFolder, ::testing::Values("llama", "gpt2"));

TEST_P(WeightsInFolder, NamesAndShapes_AreCompared) {
  check_with(weights_);
  for (const auto& [name, tensor] : weights_.tensors) {
    SCOPED_TRACE(name);
    TensorFile other = weights_;
    other.tensors.erase(name);
    EXPECT_THAT(thrown_by([&] { check_with(other); }), IsUsageError(path()));
    Shape shape = tensor.shape;
    shape[0] *= 2;
    other.tensors[name] = {DType::kFloat32, shape, TensorBytes(2 * tensor.data.size())};
    EXPECT_THAT(thrown_by([&] { check_with(other); }), IsUsageError(path()));
  }
  TensorFile more = weights_;
  more.tensors["surplus.weight"] = weights_.tensors.begin()->second;
  EXPECT_THAT(thrown_by([&] { check_with(more); }), IsUsageError(path()));
}

TEST_P(WeightsInFolder, SkippedPattern_CountsAsUsed) {
  write_safetensors(path(), weights_);
  EXPECT_THAT(unused_options(job("lm_head.*"), {}), IsEmpty());
  std::filesystem::remove(path());
  EXPECT_EQ(unused_options(job("lm_head.*"), {}).size(), 1u);
}

TEST_P(WeightsInFolder, OpenedWeights_AreThoseThatAreRead) {
  write_safetensors(path(), weights_);
  const TensorFile read = read_job_weights(job(), path()), opened = open_job_weights(job(), path());
  ASSERT_EQ(read.tensors.size(), opened.tensors.size());
  for (const auto& [name, tensor] : opened.tensors) {
    EXPECT_TRUE(tensor.load) << name << " is in memory";
    const HostTensor& same = read.tensors.at(name);
    EXPECT_EQ(tensor.shape, same.shape) << name;
    const TensorBytes values = tensor.values();
    EXPECT_TRUE(std::ranges::equal(values.span(), same.values().span())) << name;
  }
}

}  // namespace
}  // namespace fleet
