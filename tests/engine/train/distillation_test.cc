// Jobs with a teacher (train.distillation).
#include "tests/captured_log.h"
#include "tests/engine/train/trainer_job.h"
#include "train/checkpoint.h"
#include "train/job_task.h"
#include "train/session.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kTeacherVars[] = "unsaved.teacher.";

class Distillation : public TrainerTest {
 protected:
  // The teacher is the default mlp after one epoch.
  void SetUp() override {
    TrainerTest::SetUp();
    teacher_ = output_ + "_teacher.safetensors";
    run(job({"train.epochs=1"}, R"({"name": "mlp", "num_classes": 4})"), 1);
    fs::copy_file(*latest_checkpoint(output_ + "/checkpoints") + "/model.safetensors", teacher_);
    fs::remove_all(output_);
  }
  void TearDown() override {
    TrainerTest::TearDown();
    fs::remove(teacher_);
  }

  Job student(const std::vector<std::string>& overrides) const {
    return job(
        with({"train.distillation.weights=" + teacher_, "train.distillation.model=mlp"}, overrides),
        R"({"name": "mlp", "num_classes": 4, "hidden": [8]})");
  }

  std::string teacher_;
};

TEST_F(Distillation, Teacher_StaysAsItIsAndIsInNoCheckpoint) {
  const Outcome plain = run(job({}, R"({"name": "mlp", "num_classes": 4, "hidden": [8]})"), 1);
  fs::remove_all(output_);
  const Outcome outcome = run(student({"train.distillation.temperature=2"}), 1);
  const TensorFile teacher = read_weights(teacher_);
  for (const auto& [name, tensor] : teacher.tensors) {
    const std::vector<float>& values = outcome.weights[0].at(kTeacherVars + name);
    const TensorBytes bytes = tensor.values();
    ASSERT_EQ(bytes.span().size(), values.size() * sizeof(float)) << name;
    EXPECT_EQ(std::memcmp(bytes.span().data(), values.data(), bytes.span().size()), 0) << name;
  }
  const TensorFile saved =
      read_weights(*latest_checkpoint(output_ + "/checkpoints") + "/model.safetensors");
  EXPECT_EQ(saved.tensors.size(), 4u);
  EXPECT_GT(distance(plain.weights[0], outcome.weights[0]), 1e-3) << "it learns from the teacher";
}

TEST_F(Distillation, TwoRanksAndStrategies_FollowOneRank) {
  for (const std::string more :
       {"train.distillation.hard=true", "strategy.gradient_merge=true", "strategy.recompute=true",
        "strategy.sharding=true", "strategy.sharding_configs={\"stage\": 3}",
        "train.distillation.mean=[0.4]"}) {
    std::vector<std::string> keys = {more};
    if (more.starts_with("strategy.sharding_configs")) keys.push_back("strategy.sharding=true");
    SCOPED_TRACE(more);
    const Outcome one = run(student(with(keys, {"data.batch_size=16"})), 1);
    fs::remove_all(output_);
    const Outcome two = run(student(with(keys, {"data.batch_size=8"})), 2);
    Weights of_one = parameters(one.weights[0]), of_two;
    for (const Weights& weights : two.weights) of_two.insert(weights.begin(), weights.end());
    std::erase_if(of_one, [&](const auto& entry) {
      return entry.first.ends_with("_gradient") || !of_two.contains(entry.first);
    });
    EXPECT_GE(of_one.size(), 4u);
    EXPECT_LT(distance(of_one, of_two), 1e-5);
    fs::remove_all(output_);
  }
}

TEST_F(Distillation, MixedPrecision_Trains) {
  const Outcome outcome = run(student({"strategy.amp=true"}), 1);
  EXPECT_TRUE(std::isfinite(outcome.results[0].evaluation.loss()));
}

TEST_F(Distillation, Interrupted_IsBitIdentical) {
  const Outcome whole = run(student({}), 1);
  fs::remove_all(output_);
  run(student({"train.max_steps=3"}), 1);
  const Outcome resumed = run(student({"checkpoint.resume=auto"}), 1);
  EXPECT_EQ(distance(whole.weights[0], resumed.weights[0]), 0);
}

// pixel = image * 0.5 + 0.25; the teacher sees (pixel - 0.125) / 0.25.
TEST_F(Distillation, OwnNormalisation_IsThatOfTheSamePixels) {
  const Job job = student({"data.mean=[0.25]", "data.std=[0.5]", "train.distillation.mean=[0.125]",
                           "train.distillation.std=[0.25]"});
  const BuiltProgram built = build_program(job, {.columns = expected_columns(job)});
  const VarId image = built.program.find("teacher/normalised.out");
  ASSERT_NE(image, kNoVar);
  for (const Op& op : built.program.ops()) {
    if (op.outputs.empty() || op.outputs[0] != image) continue;
    EXPECT_EQ(op.attributes.number("scale"), 2);
    EXPECT_EQ(op.attributes.number("bias"), 0.5);
  }
  const Job same = student({});
  EXPECT_EQ(build_program(same, {.columns = expected_columns(same)})
                .program.find("teacher/normalised.out"),
            kNoVar);
}

TEST_F(Distillation, TeacherInAPipeline_IsRefused) {
  const Job job = student({"strategy.pipeline=true"});
  EXPECT_THAT(thrown_by([&] {
                build_program(job, {.columns = expected_columns(job), .rank = 0, .world = 2});
              }),
              IsUsageError("train.distillation.weights"));
}

TEST_F(Distillation, TeachersThatDoNotFit_AreRefused) {
  EXPECT_THAT(refusal(student({"train.distillation.weights=/nowhere/teacher.pth"})),
              IsUsageError("train.distillation.weights"));
  EXPECT_THAT(refusal(student({"model.num_classes=3"})), IsUsageError(teacher_));
  EXPECT_THAT(refusal(student({"train.distillation.model=gpt2"})),
              IsUsageError("train.distillation.model"));
  EXPECT_THAT(refusal(student({"train.distillation.mean=[0.1, 0.2]"})),
              IsUsageError("train.distillation.mean"));
}

TEST_F(Distillation, TeacherOfACheckpoint_HasTheEvaluatedWeights) {
  const std::string folder = output_ + "_teacher";
  run(job({"train.epochs=1", "train.ema.decay=0.5"}, R"({"name": "mlp", "num_classes": 4})"), 1);
  fs::rename(*latest_checkpoint(output_ + "/checkpoints"), folder);
  fs::remove_all(output_);
  const Outcome outcome = run(student({"train.distillation.weights=" + folder}), 1);
  const TensorFile averages = read_weights(folder + "/ema.safetensors");
  fs::remove_all(folder);
  EXPECT_FALSE(averages.tensors.empty());
  for (const auto& [name, tensor] : averages.tensors) {
    const std::vector<float>& values = outcome.weights[0].at(kTeacherVars + name);
    const TensorBytes bytes = tensor.values();
    EXPECT_EQ(std::memcmp(bytes.span().data(), values.data(), bytes.span().size()), 0) << name;
  }
}

// A file is what it is; a line tells of the folder.
TEST_F(Distillation, TeacherOfAFileOfACheckpoint_HasItsWeightsAndSaysSo) {
  const std::string folder = output_ + "_teacher";
  run(job({"train.epochs=1", "train.ema.decay=0.5"}, R"({"name": "mlp", "num_classes": 4})"), 1);
  fs::rename(*latest_checkpoint(output_ + "/checkpoints"), folder);
  for (const std::string name : {"model", "ema"}) {
    fs::remove_all(output_);
    const LogCapture log;
    const std::string file = folder + "/" + name + ".safetensors";
    const Outcome outcome = run(student({"train.distillation.weights=" + file}), 1);
    const bool told = log.captured_log().find("teacher: " + file + " has") != std::string::npos;
    EXPECT_EQ(told, name == "model");
    const TensorFile weights = read_weights(file);
    for (const auto& [tensor, values] : weights.tensors) {
      const std::vector<float>& own = outcome.weights[0].at(kTeacherVars + tensor);
      EXPECT_EQ(std::memcmp(values.values().span().data(), own.data(), own.size() * 4), 0);
    }
  }
  fs::remove_all(folder);
}

// The weights' step does not change what the teacher says.
TEST_F(Distillation, SecondPass_LeavesTheTeacherOut) {
  const Job job = student({"train.sam=0.05"});
  const BuiltProgram built = build_program(job, {.columns = expected_columns(job)});
  int again = 0;
  for (const Op& op : built.program.ops()) {
    if (op.section != built.program.find_section("sam")) continue;
    for (const VarId id : op.writes()) {
      const std::string& name = built.program.var(id).name;
      again += name.ends_with("@SAM") ? 1 : 0;
      EXPECT_FALSE(name.starts_with("teacher/")) << name;
    }
  }
  EXPECT_GT(again, 4);
}

}  // namespace
}  // namespace fleet
