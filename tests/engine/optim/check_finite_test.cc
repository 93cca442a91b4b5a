#include "optim/check_finite.h"

#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "tensor/float16.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// A loss and gradients of all three types, one of them in blocks.
class Checked {
 public:
  Checked() {
    Program program;
    PlanOptions options = op_plan_options();
    const SectionId section = program.add_section("optimize", {});
    loss_ = program.feed("loss", DType::kFloat32, {1});
    gradients_ = {program.feed("a", DType::kFloat32, kShape),
                  program.feed("b", DType::kBFloat16, kShape),
                  program.feed("c", DType::kFloat16, kShape),
                  program.state("d", kShape, {Init::kConstant, 1})};
    options.initial_layouts[gradients_[3]] =
        Layout::blocked({32, 3, 30, 40}, {57600, 19200, 640, 16}, {{0, 16}});
    found_ = append_check_finite(program, section, loss_, gradients_);
    executor_ =
        std::make_unique<Executor>(plan_program(program, {found_}, options), op_device(), nullptr);
    executor_->initialize(1);
  }

  // The result with these values put in: {input, element, value}; input 0 is the loss.
  struct Poke {
    int input;
    int64_t element;
    float value;
  };
  int32_t step(const std::vector<Poke>& pokes) {
    float loss = 3e38f;
    std::vector<float> wide(kShape.elements(), 60000), blocked(wide.size(), 1);
    std::vector<BFloat16> bf16(wide.size(), BFloat16(3e38f));
    std::vector<Float16> fp16(wide.size(), Float16(-65504));
    for (const auto& [input, element, value] : pokes) {
      if (input == 0) loss = value;
      if (input == 1) wide[element] = value;
      if (input == 2) bf16[element] = BFloat16(value);
      if (input == 3) fp16[element] = Float16(value);
      if (input == 4) blocked[element] = value;
    }
    executor_->feed(loss_, std::span(&loss, 1));
    executor_->feed(gradients_[0], wide);
    executor_->feed(gradients_[1], bf16);
    executor_->feed(gradients_[2], fp16);
    executor_->write(gradients_[3], blocked);
    executor_->run({});
    return executor_->values<int32_t>(found_)[0];
  }

  std::vector<int64_t> record() {
    return executor_->values<int64_t>(executor_->program().find(kFiniteRecordName));
  }

 private:
  inline static const Shape kShape{20, 3, 30, 40};
  VarId loss_ = kNoVar, found_ = kNoVar;
  std::vector<VarId> gradients_;
  std::unique_ptr<Executor> executor_;
};

TEST(CheckFinite, LargeNumbers_AreFine) {
  Checked checked;
  EXPECT_EQ(checked.step({}), 0);
  EXPECT_EQ(checked.step({}), 0);
  EXPECT_EQ(checked.record(), (std::vector<int64_t>{2, 0, 0, 0}));
}

TEST(CheckFinite, OneBadElementAnywhere_IsFoundAndNamed) {
  for (int input = 0; input < 5; ++input) {
    for (const int64_t element : {0, 16384, 71999}) {
      for (const float value : {INFINITY, -INFINITY, NAN}) {
        Checked checked;
        EXPECT_NE(checked.step({{input, element, value}}), 0) << input << " " << element;
        EXPECT_EQ(checked.record(), (std::vector<int64_t>{1, 1, 1, input})) << element;
      }
    }
  }
}

TEST(CheckFinite, Record_KeepsTheFirstAndCountsAll) {
  Checked checked;
  checked.step({});
  checked.step({{4, 7, NAN}, {2, 20000, INFINITY}});  // the lowest of a step
  checked.step({});
  checked.step({{0, 0, NAN}});
  EXPECT_EQ(checked.record(), (std::vector<int64_t>{4, 2, 2, 2}));
}

}  // namespace
}  // namespace fleet
