// Properties of all update rules (sgd, momentum, adam, ...): many parameters in one operation,
// gradients in 16-bit types, copies, skipped updates.
#include "optim/update_op.h"

#include <gtest/gtest.h>

#include <cmath>

#include "passes/pass.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// Each registered rule, and variants of some.
const std::vector<std::string>& all_rules() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> rules = sections_of_all_rules();
    for (const char* variant : {
             R"({"name": "sgd", "weight_decay": 0.01})",
             R"({"name": "momentum", "weight_decay": 0.01})",
             R"({"name": "momentum", "use_nesterov": true})",
             R"({"name": "adam", "weight_decay": 0.01})",
             R"({"name": "adam", "amsgrad": true, "beta2": 0.5})",
             R"({"name": "adan", "weight_decay": 0.01})",
             R"({"name": "adan", "no_prox": true, "weight_decay": 0.01})",
             R"({"name": "lars", "lars_coeff": 0.02, "weight_decay": 0.01})",
             R"({"name": "lars", "weight_decay": 0})",
             R"({"name": "lamb", "coupled_weight_decay": 0.01})",
             R"({"name": "rmsprop", "weight_decay": 0.01})",
             R"({"name": "rmsprop", "momentum": 0.9})",
             R"({"name": "rmsprop", "centered": true})",
             R"({"name": "rmsprop", "centered": true, "momentum": 0.9})",
             R"({"name": "adagrad", "lr_decay": 0.1, "weight_decay": 0.01})",
             R"({"name": "lion", "weight_decay": 0.01})",
             R"({"name": "muon", "adamw_rate": 0.5})",
             R"({"name": "adafactor", "scale_parameter": false, "weight_decay": 0.01})",
         }) {
      rules.emplace_back(variant);
    }
    return rules;
  }();
  return all;
}

constexpr const char* kMomentum = R"({"name": "momentum", "weight_decay": 0.01})";

struct Setup {
  DType gradients = DType::kFloat32;
  bool copies = false, scaled = false, fuse = false;
  bool narrow = false;                // parameters are bfloat16
  uint64_t seed = 5;                  // of their rounding
  std::optional<Layout> layout = {};  // of every parameter
  std::optional<Layout> copy_layout = {};
};

// Parameters of these shapes whose gradients, found_inf and unscale are fed.
class Updates {
 public:
  Updates(const std::string& json, const std::vector<Shape>& shapes, const Setup& setup)
      : setup_(setup) {
    PlanOptions options = op_plan_options();
    Program program;
    const SectionId section = program.add_section("optimize", {});
    const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
    GradientScaling scaling;
    if (setup.scaled) {
      scaling = {.found_inf = program.feed("found_inf", DType::kInt32, {1}),
                 .unscale = program.feed("unscale", DType::kFloat32, {1})};
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = "p" + std::to_string(i);
      const VarId parameter = program.parameter(name, shapes[i], {Init::kUniform, -1, 1});
      parameters_.push_back(parameter);
      if (setup.narrow) program.var(parameter).dtype = DType::kBFloat16;
      gradients_.push_back(program.feed(name + "@GRAD", setup.gradients, shapes[i]));
      program.set_gradient(parameter, gradients_.back());
      if (setup.layout) options.initial_layouts[parameter] = *setup.layout;
      if (setup.copies) program.make_copy(parameter, DType::kBFloat16);
      if (setup.copy_layout) {
        options.initial_layouts[program.copy_of(parameter)] = *setup.copy_layout;
      }
    }
    append_updates(program, section, parameters_, rate, optimizer_settings(json), scaling,
                   setup.seed);
    if (setup.fuse) {
      EXPECT_TRUE(run_pass("fuse_all_optimizer_ops", program, {}));
    }
    executor_ =
        std::make_unique<Executor>(plan_program(program, {}, options), op_device(), nullptr);
    executor_->initialize(7);
    feed("learning_rate", 0.1f);
    if (setup.scaled) feed("unscale", 1.f);
  }

  template <typename T>
  void feed(const std::string& name, T value) {
    executor_->feed(executor_->program().find(name), std::span(&value, 1));
  }

  // Gradients that depend on the step; multiplied with `scale`, rounded to their type.
  void step(float scale = 1) {
    for (size_t p = 0; p < gradients_.size(); ++p) {
      const int64_t count = executor_->program().var(gradients_[p]).shape.elements();
      std::vector<float> wide(count);
      std::vector<BFloat16> bf16(count);
      std::vector<Float16> fp16(count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t number = 7 * i + 5 * static_cast<int64_t>(p) + 3 * steps_;
        const float value = scale * (static_cast<float>(number % 61) / 32 - 1);
        wide[i] = value;
        bf16[i] = BFloat16(value);
        fp16[i] = Float16(value);
      }
      executor_->feed(gradients_[p], setup_.gradients == DType::kFloat32   ? ConstHostBytes(wide)
                                     : setup_.gradients == DType::kFloat16 ? ConstHostBytes(fp16)
                                                                           : ConstHostBytes(bf16));
      executor_->synchronize();
    }
    executor_->run({.step = steps_++});
  }

  // Parameters and states, by name.
  std::map<std::string, std::vector<float>> values() {
    std::map<std::string, std::vector<float>> all;
    const Program& program = executor_->program();
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (is_saved(var) && var.dtype == DType::kFloat32) {
        all[var.name] = executor_->values<float>(id);
      } else if (is_saved(var) && var.dtype == DType::kBFloat16) {
        const std::vector<BFloat16> narrow = executor_->values<BFloat16>(id);
        all[var.name] = {narrow.begin(), narrow.end()};
      }
    }
    return all;
  }
  std::vector<uint16_t> copy(size_t parameter) {
    return executor_->values<uint16_t>(executor_->program().copy_of(parameters_[parameter]));
  }
  int64_t counted() {
    return executor_->values<int64_t>(executor_->program().find("optimizer.step"))[0];
  }
  const Program& program() { return executor_->program(); }
  const Plan& plan() { return executor_->plan(); }

 private:
  const Setup setup_;
  std::vector<VarId> parameters_, gradients_;
  std::unique_ptr<Executor> executor_;
  int64_t steps_ = 0;
};

// From one element to more than a chunk, with tails of every kind.
const std::vector<Shape> kShapes = {{1}, {7}, {64}, {3, 5, 7}, {1025}, {40001}, {16384}, {2}};

TEST(UpdateOp, ManyParametersInOne_GivesTheSameBits) {
  for (const std::string& rule : all_rules()) {
    for (DType gradients : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      Updates one(rule, kShapes, {.gradients = gradients, .copies = true});
      Updates all(rule, kShapes, {.gradients = gradients, .copies = true, .fuse = true});
      EXPECT_LT(all.program().ops().size(), one.program().ops().size());
      for (int i = 0; i < 3; ++i) {
        one.step();
        all.step();
      }
      EXPECT_EQ(one.values(), all.values()) << rule << " " << name_of(gradients);
      for (size_t p = 0; p < kShapes.size(); ++p) EXPECT_EQ(one.copy(p), all.copy(p));
    }
  }
}

// The feeds are exact in every type.
TEST(UpdateOp, LowGradients_ActLikeTheirFloat32Values) {
  for (const std::string& rule : all_rules()) {
    Updates wide(rule, kShapes, {}), bf16(rule, kShapes, {.gradients = DType::kBFloat16}),
        fp16(rule, kShapes, {.gradients = DType::kFloat16});
    for (int i = 0; i < 3; ++i) {
      for (Updates* updates : {&wide, &bf16, &fp16}) updates->step();
    }
    EXPECT_EQ(wide.values(), bf16.values()) << rule;
    EXPECT_EQ(wide.values(), fp16.values()) << rule;
  }
}

TEST(UpdateOp, Copy_IsTheRoundedParameter) {
  for (const std::string& rule : all_rules()) {
    Updates updates(rule, kShapes, {.copies = true, .fuse = true});
    updates.step();
    auto values = updates.values();
    for (size_t p = 0; p < kShapes.size(); ++p) {
      std::vector<uint16_t> want;
      for (float value : values["p" + std::to_string(p)]) want.push_back(BFloat16(value).bits);
      EXPECT_EQ(updates.copy(p), want) << rule;
    }
  }
}

TEST(UpdateOp, CopyInAnotherLayout_IsTheSame) {
  const Shape shape{20, 3, 2, 2};
  const Layout master = Layout::blocked({32, 3, 2, 2}, {192, 64, 32, 16}, {{0, 16}});
  Updates plain(kMomentum, {shape, shape}, {.copies = true, .fuse = true});
  Updates laid_out(kMomentum, {shape, shape},
                   {.copies = true,
                    .fuse = true,
                    .layout = master,
                    .copy_layout = Layout::channels_last(shape)});
  plain.step();
  laid_out.step();
  EXPECT_EQ(plain.values(), laid_out.values());
  EXPECT_EQ(plain.copy(1), laid_out.copy(1));
}

// The layouts of a convolution's weights and of their copy in bfloat16.
TEST(UpdateOp, CopyWithAlternatingRows_IsWrittenByTheUpdate) {
  if (op_device().backend() != "cpu") GTEST_SKIP() << "a layout of the CPU's convolutions";
  const Shape shape{20, 40, 3, 1};  // padded to 32, 48
  const Shape padded{32, 48, 3, 1};
  const std::vector<int64_t> strides = {3 * 3 * 256, 3 * 256, 256, 256};
  const Layout rows = Layout::blocked(padded, strides, {{1, 16}, {0, 16}});
  const Layout alternating = Layout::blocked(padded, strides, {{1, 8}, {0, 16}, {1, 2}});
  Updates plain(kMomentum, {shape, shape}, {.copies = true, .fuse = true});
  Updates laid_out(kMomentum, {shape, shape},
                   {.copies = true, .fuse = true, .layout = rows, .copy_layout = alternating});
  for (const PlannedOp& planned : laid_out.plan().ops) {
    const bool refresh = laid_out.program().sections()[planned.op.section].when.refresh;
    EXPECT_TRUE(planned.op.type() != "reorder" || refresh ||
                laid_out.program().var(planned.op.inputs[0]).kind == VarKind::kFeed)
        << laid_out.program().var(planned.op.inputs[0]).name;
  }
  for (Updates* updates : {&plain, &laid_out}) updates->step();
  EXPECT_EQ(plain.values(), laid_out.values());
  EXPECT_EQ(plain.copy(1), laid_out.copy(1));
}

TEST(UpdateOp, Overflow_ChangesNothing) {
  for (const std::string& rule : all_rules()) {
    Updates updates(rule, kShapes, {.copies = true, .scaled = true, .fuse = true});
    updates.feed("found_inf", 0);
    updates.step();
    const auto before = updates.values();
    const std::vector<uint16_t> copy = updates.copy(5);
    updates.feed("found_inf", 1);
    updates.step(INFINITY);
    EXPECT_EQ(updates.values(), before) << rule;
    EXPECT_EQ(updates.copy(5), copy) << rule;
    const bool counts = std::string(rule).find(": \"ada") != std::string::npos;
    if (counts) {
      EXPECT_EQ(updates.counted(), 1) << rule;
    }
  }
}

// The Plan reorders the copy behind the update, whether there was one or not.
TEST(UpdateOp, OverflowWithCopyInAnotherLayout_KeepsTheCopy) {
  const Shape shape{20, 3, 2, 2};
  Updates updates(
      kMomentum, {shape, shape},
      {.copies = true, .scaled = true, .fuse = true, .copy_layout = Layout::channels_last(shape)});
  updates.feed("found_inf", 0);
  updates.step();
  const std::vector<uint16_t> copy = updates.copy(1);
  updates.feed("found_inf", 1);
  updates.step(INFINITY);
  EXPECT_EQ(updates.copy(1), copy);
}

// Scales that are powers of two round nothing.
TEST(UpdateOp, Unscale_MultipliesTheGradients) {
  for (const char* clip :
       {"", R"(, "clip": "global_norm", "clip_norm": 0.5)",
        R"(, "clip": "norm", "clip_norm": 0.25)", R"(, "clip": "value", "clip_value": 0.125)",
        R"(, "clip": "adaptive")"}) {
    for (DType gradients : {DType::kFloat32, DType::kBFloat16}) {
      const std::string rule = R"({"name": "momentum")" + std::string(clip) + "}";
      Updates plain(rule, kShapes, {.gradients = gradients});
      Updates scaled(rule, kShapes, {.gradients = gradients, .scaled = true});
      scaled.feed("found_inf", 0);
      scaled.feed("unscale", 0x1p-10f);
      for (int i = 0; i < 2; ++i) {
        plain.step();
        scaled.step(0x1p10f);
      }
      EXPECT_EQ(plain.values(), scaled.values()) << rule << name_of(gradients);
    }
  }
}

TEST(UpdateOp, ManyNarrowParametersInOne_GiveTheSameBits) {
  for (const std::string& rule : all_rules()) {
    for (DType gradients : {DType::kFloat32, DType::kBFloat16}) {
      Updates one(rule, kShapes, {.gradients = gradients, .narrow = true});
      Updates all(rule, kShapes, {.gradients = gradients, .fuse = true, .narrow = true});
      for (int i = 0; i < 3; ++i) {
        one.step();
        all.step();
      }
      EXPECT_EQ(one.values(), all.values()) << rule << " " << name_of(gradients);
    }
  }
}

// Parameters of bfloat16, rounded in each step, stay as close to float32 as its 8 bits allow: the
// root of the mean square of the differences, in parts of the largest value.
TEST(UpdateOp, NarrowParameters_FollowFloat32) {
  for (const std::string& rule : all_rules()) {
    Updates wide(rule, {{4096}}, {}), narrow(rule, {{4096}}, {.narrow = true});
    for (int i = 0; i < 5; ++i) {
      wide.step();
      narrow.step();
    }
    const std::vector<float> want = wide.values()["p0"], got = narrow.values()["p0"];
    double squares = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      squares += std::pow(static_cast<double>(want[i]) - got[i], 2);
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    }
    EXPECT_LT(std::sqrt(squares / 4096), 0.01 * largest) << rule;
    EXPECT_GT(squares, 0) << rule;
  }
}

TEST(UpdateOp, OverflowWithNarrowParameters_ChangesNothing) {
  for (const std::string& rule : all_rules()) {
    Updates updates(rule, kShapes, {.scaled = true, .fuse = true, .narrow = true});
    updates.feed("found_inf", 0);
    updates.step();
    const auto before = updates.values();
    updates.feed("found_inf", 1);
    updates.step(INFINITY);
    EXPECT_EQ(updates.values(), before) << rule;
    EXPECT_EQ(updates.counted(), 1) << rule;
  }
}

TEST(UpdateOp, NarrowParametersOfAnotherSeed_AreRoundedOtherwise) {
  Updates one(kMomentum, kShapes, {.narrow = true, .seed = 1});
  Updates same(kMomentum, kShapes, {.narrow = true, .seed = 1});
  Updates other(kMomentum, kShapes, {.narrow = true, .seed = 2});
  for (Updates* updates : {&one, &same, &other}) updates->step();
  EXPECT_EQ(one.values(), same.values());
  EXPECT_NE(one.values(), other.values());
}

}  // namespace
}  // namespace fleet
