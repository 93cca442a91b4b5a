// The weights that evaluation, prediction and export take.
#include "train/trained_weights.h"

#include <unistd.h>

#include "base/file.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using Overrides = std::vector<std::string>;

// In a working folder of its own, with weights of an mlp without hidden layers.
class TrainedWeightsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    folder_ = fs::path(::testing::TempDir()) / ("trained_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
    write("file.safetensors", 1);
    write("other.safetensors", 2);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  static Job job(const Overrides& in_file, const Overrides& on_command_line = {}) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp", "num_classes": 2, "hidden": []}, "train": {"name": "net"}})",
        "job.json");
    for (const std::string& text : in_file) {
      const size_t equals = text.find('=');
      tree.set(text.substr(0, equals), text.substr(equals + 1), "job.json");
    }
    apply_overrides(tree, on_command_line);
    return make_job(tree);
  }
  // Of images of 1x1x2.
  static void write(const std::string& path, float value) {
    std::vector<float> weight(4, value), bias(2, value);
    TensorFile file;
    const auto bytes = [](const std::vector<float>& values) {
      return TensorBytes::view(values.data(), values.size() * sizeof(float));
    };
    file.tensors["fc1.weight"] = {DType::kFloat32, {2, 2}, bytes(weight)};
    file.tensors["fc1.bias"] = {DType::kFloat32, {2}, bytes(bias)};
    if (fs::path(path).has_parent_path()) make_directories(fs::path(path).parent_path().string());
    write_safetensors(path, file);
  }
  static std::string checkpoint(const std::string& run, int step, float value) {
    const std::string folder = folder_of_step(run + "/checkpoints", step);
    write(folder + "/model.safetensors", value);
    write_file_atomically(folder + "/state.json", state(step, "mlp"));
    return folder;
  }
  // settings: of the weights, as JSON.
  static std::string state(int step, const std::string& model, const std::string& settings = "{}") {
    return R"({"version": 1, "step": )" + std::to_string(step) +
           R"(, "epoch": 0, "batch": 0, "seed": 1, "global_batch": 1, "model": ")" + model +
           R"(", "settings": )" + settings + "}";
  }
  static std::string source(const Job& job) {
    const auto found = find_trained_weights(job);
    return found ? found->source : "";
  }
  static std::string what(const Job& job) { return find_trained_weights(job)->what; }

  fs::path before_, folder_;
};

TEST_F(TrainedWeightsTest, FirstOfTheOrder_Counts) {
  const Overrides start = {"checkpoint.weights=file.safetensors"};
  EXPECT_EQ(source(job({})), "");
  EXPECT_EQ(source(job(start)), "file.safetensors");
  EXPECT_EQ(source(job(start, {"checkpoint.resume=auto"})), "file.safetensors");
  const std::string older = checkpoint("output/net/run-001", 4, 3);
  const std::string newest = checkpoint("output/net/run-002", 2, 4);
  for (const char* resume : {"checkpoint.resume=no", "checkpoint.resume=auto"}) {
    EXPECT_EQ(source(job(with(start, {resume}))), newest);
    EXPECT_EQ(source(job(start, {resume})), newest);
    EXPECT_EQ(source(job({}, {resume, "checkpoint.weights=other.safetensors"})),
              "other.safetensors");
  }
  const Overrides resumes = with(start, {"checkpoint.resume=" + older});
  EXPECT_EQ(source(job(resumes)), older);
  EXPECT_EQ(source(job(start, {"checkpoint.resume=" + older})), older);
  EXPECT_EQ(source(job(resumes, {"checkpoint.weights=other.safetensors"})), "other.safetensors");
}

TEST_F(TrainedWeightsTest, WeightsToPredictWith_AreForPredictions) {
  const std::string newest = checkpoint("output/net/run-001", 4, 3);
  const Overrides own = {"predict.checkpoint=other.safetensors"};
  const Overrides predicts = {"predict.input=photos"};
  EXPECT_EQ(source(job(own)), newest);
  EXPECT_EQ(source(job(own, predicts)), "other.safetensors");
  EXPECT_EQ(source(job(own, with(predicts, {"predict.checkpoint=auto"}))), newest);
  EXPECT_EQ(source(job(own, with(predicts, {"checkpoint.weights=file.safetensors"}))),
            "file.safetensors");
  EXPECT_EQ(source(job({"checkpoint.resume=" + newest}, with(predicts, own))), "other.safetensors");
}

TEST_F(TrainedWeightsTest, RunWithoutACompleteCheckpoint_IsPassedOver) {
  const std::string complete = checkpoint("output/net/run-001", 4, 3);
  make_directories("output/net/run-002/checkpoints/step_00000009.part");
  const std::string damaged = checkpoint("output/net/run-003", 4, 3);
  fs::resize_file(damaged + "/model.safetensors", 90);
  const std::string without = checkpoint("output/net/run-004", 4, 3);
  write_file_atomically(without + "/state.json", "{");
  fs::remove(checkpoint("output/net/run-005", 4, 3) + "/state.json");
  EXPECT_EQ(source(job({})), complete);
  EXPECT_EQ(source(job({"train.output=output/net/run-003"})), "");
}

TEST_F(TrainedWeightsTest, Average_CountsWhereItExists) {
  const std::string older = checkpoint("run", 4, 3), newest = checkpoint("run", 8, 4);
  const Job in_folder = job({"train.output=run"});
  EXPECT_EQ(what(in_folder), "the weights of " + newest);
  write(newest + "/ema.safetensors", 5);
  EXPECT_EQ(what(in_folder), "the average of the weights of " + newest);
  EXPECT_EQ(what(job({}, {"checkpoint.resume=" + newest})),
            "the average of the weights of " + newest);
  fs::resize_file(newest + "/ema.safetensors", 90);
  EXPECT_EQ(source(in_folder), older);
}

// Its optimizer knows that there was one: the plain weights are not what evaluations saw.
TEST_F(TrainedWeightsTest, CheckpointThatLostItsAverage_IsPassedOver) {
  const std::string older = checkpoint("run", 4, 3), newest = checkpoint("run", 8, 4);
  int64_t updates = 3;
  TensorFile states;
  states.tensors["optimizer.ema_updates"] = {
      DType::kInt64, {1}, TensorBytes::view(&updates, sizeof updates)};
  write_safetensors(newest + "/optimizer.safetensors", states);
  EXPECT_EQ(source(job({"train.output=run", "train.ema.decay=0.9"})), older);
}

// keep_best keeps an older one in addition.
TEST_F(TrainedWeightsTest, NewestCheckpoint_CountsBesideTheBest) {
  checkpoint("run", 4, 3);
  const std::string newest = checkpoint("run", 8, 4);
  EXPECT_EQ(source(job({"train.output=run", "checkpoint.keep_best=acc1", "checkpoint.keep=1"})),
            newest);
}

TEST_F(TrainedWeightsTest, CheckpointOfAnotherModel_IsRefused) {
  const std::string newest = checkpoint("run", 8, 4);
  write_file_atomically(newest + "/state.json", state(8, "lenet"));
  EXPECT_THAT(thrown_by([&] { find_trained_weights(job({"train.output=run"})); }),
              IsUsageError(newest));
}

// They are resized without a training: rarely what is meant.
TEST_F(TrainedWeightsTest, PatchesOtherThanInTraining_AreWarnedOf) {
  TensorFile file;
  file.metadata["pretrained_cfg"] = R"({"architecture": "vit_tiny_patch16_224", "fleetrun": true,
      "num_classes": 2, "model_keys": {"patch": 8}})";
  write_safetensors("own.safetensors", file);
  const auto warning = [](const std::string& keys) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "vit_tiny_patch16_224", "num_classes": 2)" + keys + R"(},
            "data": {"source": "synthetic"}, "predict": {"checkpoint": "own.safetensors"},
            "train": {"name": "net"}})",
        "job.json");
    return read_trained_weights(make_job(tree), "own.safetensors", "predict.checkpoint").warning;
  };
  EXPECT_EQ(warning(R"(, "patch": 8)"), "");
  EXPECT_NE(warning(R"(, "patch": 32)"), "");
  EXPECT_NE(warning(""), "");  // 16
}

TEST_F(TrainedWeightsTest, CheckpointOfAnotherEpsilon_IsRefused) {
  const std::string newest = checkpoint("run", 8, 4);
  write_file_atomically(newest + "/state.json",
                        state(8, "resnet20", R"({"model.batch_norm_epsilon": 0.001})"));
  const auto find = [](const std::string& epsilon) {
    const std::string model = R"(model={"name": "resnet20", "batch_norm_epsilon": )";
    return find_trained_weights(job({"train.output=run"}, {model + epsilon + "}"}));
  };
  EXPECT_EQ(find("0.001")->source, newest);
  EXPECT_THAT(thrown_by([&] { find("0.1"); }), IsUsageError(newest));
}

TEST_F(TrainedWeightsTest, OtherPreparationOfImages_IsAWarning) {
  const std::string newest = checkpoint("run", 8, 4);
  write_file_atomically(newest + "/state.json", state(8, "mlp", R"({"data.mean": [0.4]})"));
  EXPECT_EQ(find_trained_weights(job({"train.output=run", "data.mean=0.4"}))->warning, "");
  const std::string warning = find_trained_weights(job({"train.output=run"}))->warning;
  EXPECT_NE(warning.find("data.mean"), std::string::npos) << warning;
}

TEST_F(TrainedWeightsTest, SeveralDifferences_AreAllWarnedOf) {
  const std::string newest = checkpoint("run", 8, 4), model = "vit_tiny_patch16_224";
  TensorFile file;
  file.metadata["pretrained_cfg"] = R"({"architecture": "vit_tiny_patch16_224", "fleetrun": true,
      "num_classes": 2, "model_keys": {"patch": 8}})";
  write_safetensors(newest + "/model.safetensors", file);
  write_file_atomically(newest + "/state.json", state(8, model, R"({"data.mean": [0.4]})"));
  const std::string keys = R"(model={"name": "vit_tiny_patch16_224", "num_classes": 2})";
  const std::string warning = find_trained_weights(job({"train.output=run"}, {keys}))->warning;
  EXPECT_NE(warning.find("model.patch"), std::string::npos) << warning;
  EXPECT_NE(warning.find("data.mean"), std::string::npos) << warning;
}

TEST_F(TrainedWeightsTest, OtherTask_IsAWarningUnlessItsHeadIsNotUsed) {
  checkpoint("run", 8, 4);
  const auto warning = [](const std::string& task, const std::string& embedding) {
    const Overrides all = {"train.output=run", "task=" + task, "predict.embedding=" + embedding};
    return find_trained_weights(job({}, all))->warning;
  };
  EXPECT_EQ(warning("image_classification", "none"), "");
  EXPECT_NE(warning("regression", "none").find("'regression'"), std::string::npos);
  EXPECT_EQ(warning("regression", "features"), "");
}

TEST_F(TrainedWeightsTest, JobWithoutWeights_IsToldWhereItLooked) {
  EXPECT_THAT(thrown_by([&] { trained_weights(job({"train.output=none"}), "predict.checkpoint"); }),
              IsUsageError("none/checkpoints"));
  EXPECT_THAT(thrown_by([&] { trained_weights(job({}), "predict.checkpoint"); }),
              IsUsageError("predict.checkpoint"));
}

}  // namespace
}  // namespace fleet
