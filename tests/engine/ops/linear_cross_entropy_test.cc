#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "passes/backward.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// {loss, losses, hits} straight from the definition, with the logits of all rows.
std::vector<Values> naive_head_loss(const std::vector<Values>& in, size_t depth) {
  const size_t rows = in[2].size(), classes = in[1].size() / depth;
  Values loss(1), losses(rows), hits(rows);
  for (size_t n = 0; n < rows; ++n) {
    if (in[2][n] == -100 || in[3][n] == 0) continue;
    double sum = 0, own = 0, largest = -INFINITY;
    size_t best = 0;
    for (size_t c = 0; c < classes; ++c) {
      double logit = in.size() > 4 ? in[4][c] : 0;
      for (size_t d = 0; d < depth; ++d) logit += in[0][n * depth + d] * in[1][c * depth + d];
      sum += std::exp(logit);
      if (static_cast<size_t>(in[2][n]) == c) own = logit;
      if (logit > largest) best = c;
      largest = std::max(largest, logit);
    }
    losses[n] = std::log(sum) - own;
    hits[n] = static_cast<size_t>(in[2][n]) == best ? 1 : 0;
    loss[0] += in[3][n] * losses[n];
  }
  return {loss, losses, hits};
}

CheckInput whole_numbers(const Shape& shape, Values values) {
  return {.shape = shape, .values = std::move(values), .dtype = DType::kInt64};
}

CheckInput row_weights(const Shape& shape, Values values) {
  return {.shape = shape,
          .values = std::move(values),
          .dtype = DType::kFloat32,
          .differentiate = false};
}

struct HeadCase {
  Shape samples = {7};
  Values labels = {0, 8, 4, 4, 1, 7, 2};
  Values weights = {1, 1, 0.5, 2, 1, 0.25, 1};
  int64_t chunk = 0;
  bool biased = false;
};

// hidden [..., 5] and a head of 9 classes.
OpCheck head_check(const HeadCase& one, bool gradient = true) {
  Shape hidden =
      one.samples.rank() == 1 ? Shape{one.samples[0], 5} : Shape{one.samples[0], one.samples[1], 5};
  OpCheck check{.type = "linear_cross_entropy",
                .attributes = {{"chunk", one.chunk}},
                .inputs = {{.shape = hidden, .low = -2, .high = 2},
                           {.shape = {9, 5}, .low = -1, .high = 1},
                           whole_numbers(one.samples, one.labels),
                           row_weights(one.samples, one.weights)},
                .reference =
                    [gradient](const std::vector<Values>& in) {
                      std::vector<Values> out = naive_head_loss(in, 5);
                      if (gradient) out = {out[0], {}, {}};  // the others are not differentiable
                      return out;
                    },
                .check_gradient = gradient};
  if (one.biased) {
    check.inputs.push_back({.shape = {9}, .dtype = DType::kFloat32, .low = -2, .high = 2});
  }
  return check;
}

TEST(LinearCrossEntropy, Rows_MatchReference) {
  check_op(head_check({}));
  check_op(head_check({}, /*gradient=*/false));
}

TEST(LinearCrossEntropy, Chunks_AddUpToTheReference) {
  for (const int64_t chunk : {1, 2, 3, 6}) check_op(head_check({.chunk = chunk}));
}

TEST(LinearCrossEntropy, Bias_IsAddedToTheLogits) {
  check_op(head_check({.biased = true}));
  check_op(head_check({.biased = true}, /*gradient=*/false));
  for (const int64_t chunk : {1, 2, 3}) {
    check_op(head_check({.labels = {-100, 8, 4, -100, 1, 77, 2},
                         .weights = {1, 1, 0.5, 2, 1, 0, 1},
                         .chunk = chunk,
                         .biased = true}));
  }
  const auto none = check_op(head_check({.labels = Values(7, -100), .chunk = 2, .biased = true}));
  EXPECT_EQ(none[0], Values{0});
}

// Of equal logits the first class is the prediction; all are equal in row 0.
TEST(LinearCrossEntropy, Hits_CountTheFirstOfTheLargestLogits) {
  OpCheck check = head_check({.samples = {4}, .labels = {0, 1, 8, 2}, .weights = {1, 1, 1, 0}},
                             /*gradient=*/false);
  check.inputs[0].values = Values(20);
  EXPECT_EQ(check_op(check)[2], (Values{1, 0, 0, 0}));
}

TEST(LinearCrossEntropy, RowsThatDoNotCount_HaveNoLossAndNoGradient) {
  for (const int64_t chunk : {0, 2}) {
    const HeadCase one{
        .labels = {-100, 8, 4, -100, 1, 77, 2}, .weights = {1, 1, 0.5, 2, 1, 0, 1}, .chunk = chunk};
    check_op(head_check(one));
    const Values losses = check_op(head_check(one, /*gradient=*/false))[1];
    EXPECT_EQ(losses[0], 0);
    EXPECT_EQ(losses[3], 0);
    EXPECT_EQ(losses[5], 0);
  }
}

TEST(LinearCrossEntropy, NoRowThatCounts_HasLossAndGradientsOfZero) {
  const auto out = check_op(head_check({.labels = Values(7, -100), .chunk = 2}));
  EXPECT_EQ(out[0], Values{0});
}

TEST(LinearCrossEntropy, Sequences_MatchReference) {
  check_op(head_check({.samples = {2, 3},
                       .labels = {0, 8, -100, 4, 1, 7},
                       .weights = {1, 1, 1, 0.5, 2, 1},
                       .chunk = 4}));
}

OpCheck outside_label(double weight) {
  OpCheck check =
      head_check({.labels = {0, 8, 4, 4, 9, 7, 2}, .weights = {1, 1, 1, 1, weight, 1, 1}},
                 /*gradient=*/false);
  check.reference = [](const std::vector<Values>&) { return std::vector<Values>{{}, {}}; };
  return check;
}

TEST(LinearCrossEntropy, LabelOutsideTheClasses_IsRefusedByRowAndLabel) {
  if (op_device().backend() == "cuda") GTEST_SKIP() << "a GPU cannot stop the step";
  EXPECT_THAT(usage_failure([] { check_op(outside_label(1)); }),
              testing::HasSubstr("label 9 of sample 4"));
  check_op(outside_label(0));
}

TEST(LinearCrossEntropy, LabelOutsideTheClassesOnAGpu_MakesTheLossUndefined) {
  if (op_device().backend() != "cuda") GTEST_SKIP() << "the CPU refuses it";
  const auto out = check_op(outside_label(1));
  EXPECT_TRUE(std::isnan(out[0][0]));
  EXPECT_TRUE(std::isnan(out[1][4]));
  EXPECT_TRUE(std::isfinite(out[1][3]));
}

TEST(LinearCrossEntropy, LargeLogits_StayFinite) {
  OpCheck check = head_check({}, /*gradient=*/false);
  check.inputs[0].low = -1000;
  check.inputs[0].high = 1000;
  check.reference = [](const std::vector<Values>&) { return std::vector<Values>{{}, {}}; };
  EXPECT_TRUE(std::isfinite(check_op(check)[0][0]));
}

// A network of a hidden layer and its head; what the backward pass makes of it.
struct HeadProgram {
  Program program;
  SectionId forward = program.add_section("forward", {});
  VarId hidden, head, loss;

  HeadProgram(const Shape& samples, int64_t depth, int64_t classes, int64_t chunk, DType dtype) {
    const Shape shape{samples[0], depth};
    hidden = program.feed("hidden", dtype, shape);
    head = program.parameter("head", {classes, depth}, {Init::kUniform, -1, 1});
    program.var(head).dtype = dtype;
    const VarId labels = program.feed("labels", DType::kInt64, samples);
    const VarId weight = program.feed("row_weight", DType::kFloat32, samples);
    loss = program.emit(forward, "linear_cross_entropy", {hidden, head, labels, weight},
                        {{"chunk", chunk}})[0];
  }
  const Op& op(const std::string& type) const {
    return *std::find_if(program.ops().begin(), program.ops().end(),
                         [&](const Op& op) { return op.type() == type; });
  }
  size_t bytes_of(VarId id) const {
    return program.var(id).shape.elements() * size_of(program.var(id).dtype);
  }
};

// Issue: memory of head and loss at most 1.1 x (hidden + one chunk).
TEST(LinearCrossEntropy, Plan_HasNoLogitsOfAllRows) {
  constexpr int64_t kRows = 640, kDepth = 24, kClasses = 1000, kChunk = 128;
  HeadProgram made({kRows}, kDepth, kClasses, kChunk, DType::kFloat32);
  append_backward(made.program, made.forward, made.loss, 1);
  const Plan plan = plan_program(made.program, {made.loss}, op_plan_options());
  const size_t logits = kRows * kClasses * sizeof(float);
  size_t results = 0;
  for (VarId id = 0; id < plan.program.var_count(); ++id) {
    EXPECT_LT(plan.vars[id].bytes, logits) << plan.program.var(id).name;
  }
  for (const VarId id : {made.hidden, made.head}) results += made.bytes_of(id);
  const size_t bound = made.bytes_of(made.hidden) + kChunk * kClasses * sizeof(float);
  constexpr size_t kSmall = 16384;  // losses, seeds and padding
  EXPECT_LE(plan.arena_bytes, results + kSmall);
  if (op_device().backend() == "cpu") {
    EXPECT_LE(static_cast<double>(plan.memory().workspace), 1.1 * static_cast<double>(bound));
  }
}

TEST(LinearCrossEntropy, Gradients_AreMadeByTheForwardOperationIfNeeded) {
  HeadProgram made({4}, 3, 5, 0, DType::kFloat32);
  append_backward(made.program, made.forward, made.loss, 1);
  const Op& forward = made.op("linear_cross_entropy_with_gradient");
  EXPECT_EQ(forward.section, made.forward);
  EXPECT_EQ(forward.outputs[3], kNoVar) << "of a feed";
  EXPECT_NE(forward.outputs[4], kNoVar);

  HeadProgram evaluated({4}, 3, 5, 0, DType::kFloat32);
  EXPECT_EQ(evaluated.op("linear_cross_entropy").outputs.size(), 3u);
}

// About 1 / V is 0 in float16, so those gradients are kept multiplied by a power of two.
TEST(LinearCrossEntropy, Float16_KeepsGradientsScaled) {
  for (const auto& [dtype, scale] :
       {std::pair(DType::kFloat16, 1024.0), std::pair(DType::kBFloat16, 1.0)}) {
    HeadProgram made({4}, 3, 5, 0, dtype);
    append_backward(made.program, made.forward, made.loss, 1);
    for (const char* type : {"linear_cross_entropy_with_gradient", "linear_cross_entropy_grad"}) {
      EXPECT_EQ(made.op(type).attributes.number("gradient_scale"), scale) << type;
    }
    EXPECT_EQ(made.program.var(made.program.gradient(made.head)).dtype, dtype);
  }
}

TEST(LinearCrossEntropy, WrongInputs_AreRefused) {
  const auto refuse = [](const Shape& head, const Shape& labels, const Shape& weight,
                         const Shape& bias = {5}) {
    Program program;
    const SectionId forward = program.add_section("forward", {});
    return usage_failure([&] {
      program.emit(
          forward, "linear_cross_entropy",
          {program.feed("h", DType::kFloat32, {4, 3}), program.feed("w", DType::kFloat32, head),
           program.feed("l", DType::kInt64, labels), program.feed("r", DType::kFloat32, weight),
           program.feed("b", DType::kFloat32, bias)});
    });
  };
  EXPECT_THAT(refuse({5, 4}, {4}, {4}), testing::HasSubstr("head ["));
  EXPECT_THAT(refuse({5, 3}, {3}, {4}), testing::HasSubstr("labels ["));
  EXPECT_THAT(refuse({5, 3}, {4}, {3}), testing::HasSubstr("row_weight ["));
  EXPECT_NE(refuse({5, 3}, {4}, {4}, {4}), "");
}

}  // namespace
}  // namespace fleet
