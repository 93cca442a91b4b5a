#include "train/served_job.h"

#include <gtest/gtest.h>

#include "passes/gradients.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Records the calls of a trainer, and updates nothing.
class RecordedExchange : public ParameterExchange {
 public:
  RecordedExchange(std::vector<std::string>& calls, std::vector<std::vector<float>>& sums)
      : calls_(calls), sums_(sums) {}
  void begin(Executor&, int64_t steps) override { add("begin", steps); }
  void update(Executor& executor, int64_t step, double learning_rate) override {
    EXPECT_NEAR(learning_rate, 0.05, 1e-6);
    add("update", step);
    record(executor);
  }
  void synchronize(Executor& executor, bool with_states) override {
    add("synchronize", with_states ? 1 : 0);
    record(executor);
  }
  void finish() override { calls_.push_back("finish"); }
  std::string text() const override { return "recorded"; }

 private:
  void add(const std::string& name, int64_t number) {
    calls_.push_back(name + " " + std::to_string(number));
  }
  // The sums of gradients of the first parameter.
  void record(Executor& executor) {
    const Program& program = executor.program();
    const std::string& first = program.var(program.parameters()[0]).name;
    const VarId sum = program.find(first + kMergedGradient);
    if (sum != kNoVar) sums_.push_back(executor.values<float>(sum));
  }

  std::vector<std::string>& calls_;
  std::vector<std::vector<float>>& sums_;
};

class ServedJob : public TrainerTest {
 protected:
  void train(const std::vector<std::string>& overrides) {
    const Job of = job(with({"data.batch_size=32"}, overrides));
    HostDevice device;
    TrainerOptions options;
    options.servers = {.count = 2, .connect = [&](const Program& program, const auto& columns) {
                         const Predicate when =
                             program.sections()[program.find_section("optimize")].when;
                         EXPECT_NE(when.flag, kNoFlag);
                         columns_ = columns;
                         return std::make_unique<RecordedExchange>(calls_, sums_);
                       }};
    Trainer trainer(of, device, options);
    trainer.run();
  }
  std::vector<std::string> calls_;
  std::vector<std::vector<float>> sums_;
  std::vector<Column> columns_;
};

TEST_F(ServedJob, Trainer_PushesEachStepAndReadsStatesToSave) {
  train({"train.epochs=1", "train.evaluate_every=0"});
  EXPECT_THAT(calls_, ElementsAre("begin 0", "update 0", "update 1", "synchronize 1", "finish"));
}

TEST_F(ServedJob, Evaluation_NeedsNoStates) {
  train({"train.epochs=1", "checkpoint.at_end=false"});
  EXPECT_THAT(calls_, ElementsAre("begin 0", "update 0", "update 1", "synchronize 0", "finish"));
}

TEST_F(ServedJob, GradientMerge_PushesSumsAndZeroesThem) {
  train({"train.evaluate_every=0", "strategy.gradient_merge=true",
         "strategy.gradient_merge_configs.k_steps=2"});
  EXPECT_THAT(calls_, ElementsAre("begin 0", "update 1", "update 3", "synchronize 1", "finish"));
  ASSERT_EQ(sums_.size(), 3u);
  EXPECT_THAT(sums_[0], Not(Each(0.0f)));
  EXPECT_THAT(sums_[1], Not(Each(0.0f)));
  EXPECT_THAT(sums_[2], Each(0.0f));
}

TEST_F(ServedJob, Resume_BeginsAtTheStepOfTheCheckpoint) {
  train({"train.epochs=1", "train.evaluate_every=0"});
  calls_.clear();
  train({"train.epochs=2", "train.evaluate_every=0", "checkpoint.resume=auto"});
  EXPECT_THAT(calls_, ElementsAre("begin 2", "update 2", "update 3", "synchronize 1", "finish"));
}

TEST_F(ServedJob, WhatServersCannotDo_IsRefusedByKey) {
  const auto refused = [&](const std::string& key, const std::string& value) {
    const Error error = thrown_by([&] { train({key + "=" + value}); });
    EXPECT_EQ(exit_code_for(error.code()), 2);
    EXPECT_THAT(error.where(), HasSubstr(key));
  };
  refused("train.evaluate_only", "true");
  refused("train.weights_dtype", "bfloat16");
  refused("predict.input", "['a.png']");
}

TEST_F(ServedJob, ColumnsText_KeepsColumns) {
  const std::vector<Column> columns = {
      {.name = "image", .shape = {3, 32, 32}},
      {.name = "input_ids", .dtype = DType::kInt64, .shape = {128}, .by_length = true},
      {.name = "label", .dtype = DType::kInt32}};
  const std::vector<Column> read = columns_from_text(columns_text(columns));
  ASSERT_EQ(read.size(), columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    EXPECT_EQ(read[i].name, columns[i].name);
    EXPECT_EQ(read[i].dtype, columns[i].dtype);
    EXPECT_EQ(read[i].shape, columns[i].shape);
    EXPECT_EQ(read[i].by_length, columns[i].by_length);
  }
  EXPECT_THAT(thrown_by([] { columns_from_text("none"); }), IsError(ErrorCode::kInternal));
}

}  // namespace
}  // namespace fleet
