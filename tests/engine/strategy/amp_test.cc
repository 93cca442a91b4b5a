#include "strategy/meta/amp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

AmpStrategy checked(const std::string& text) {
  const StrategyProto proto = strategy_proto("amp: true amp_configs { " + text + " }");
  Strategy(proto, {.low_types = {DType::kBFloat16}});  // what no meta-optimizer takes
  return check_amp(proto);
}

Error refusal(const std::string& text) {
  return thrown_by([&] { checked(text); });
}

TEST(CheckAmp, Empty_HasPaddlesDefaults) {
  const AmpStrategy amp = checked("");
  EXPECT_FALSE(amp.pure);
  EXPECT_FALSE(amp.wanted.has_value());
  EXPECT_EQ(amp.scaling.initial, 32768);
  EXPECT_TRUE(amp.scaling.dynamic);
  EXPECT_EQ(amp.scaling.incr_every_n_steps, 1000);
  EXPECT_EQ(amp.scaling.decr_every_n_nan_or_inf, 2);
  EXPECT_EQ(amp.scaling.incr_ratio, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(amp.scaling.decr_ratio), 0.8f);
}

TEST(CheckAmp, Off_HasNoEffect) {
  EXPECT_THAT(Strategy().names(), Not(Contains("amp")));
  EXPECT_THAT(make_strategy("amp_configs { incr_ratio: 0.5 }").names(), Not(Contains("amp")));
  EXPECT_THAT(make_strategy("amp: true", {.low_types = {DType::kFloat16}}).names(),
              Contains("amp"));
}

// Values are checked on a device without a low type too.
TEST(CheckAmp, BadValuesWithoutALowType_AreRefused) {
  const PassContext old{.no_low_type = "this processor is old"};
  EXPECT_THAT(thrown_by([&] { make_strategy("amp: true amp_configs { incr_ratio: 1 }", old); }),
              IsUsageError("strategy amp_configs"));
}

TEST(CheckAmp, Types_AreTaken) {
  EXPECT_EQ(checked("dtype: 'bfloat16'").wanted, DType::kBFloat16);
  EXPECT_EQ(checked("use_pure_fp16: true").wanted, DType::kFloat16);
  EXPECT_TRUE(checked("use_pure_bf16: true use_fp16_guard: false").pure);
  EXPECT_EQ(refusal("dtype: 'float8'").next(), "set it to auto, float16 or bfloat16");
  EXPECT_THAT(refusal("use_pure_fp16: true use_pure_bf16: true"),
              IsUsageError("strategy amp_configs"));
  EXPECT_THAT(refusal("use_pure_fp16: true dtype: 'bfloat16'"),
              IsUsageError("strategy amp_configs"));
}

TEST(CheckAmp, BadValues_AreRefused) {
  for (const char* text :
       {"incr_ratio: 1", "decr_ratio: 1", "init_loss_scaling: 0", "incr_every_n_steps: 0",
        "decr_every_n_nan_or_inf: 0", "use_pure_fp16: true use_fp16_guard: true"}) {
    EXPECT_EQ(refusal(text).where(), "strategy amp_configs") << text;
  }
  EXPECT_THAT(refusal("use_optimizer_fp16: true"), IsError(ErrorCode::kUnsupported, "strategy"));
}

TEST(CheckAmp, Lists_TakePaddlesNamesAndRefuseUnknownOnes) {
  EXPECT_EQ(checked("custom_black_list: ['mul', 'relu']").black_list,
            (std::vector<std::string>{"fc", "relu"}));
  EXPECT_THAT(refusal("custom_white_list: 'sofmax'"), Advises("did you mean 'softmax'?"));
}

TEST(ChooseLowType, Offered_DecideWithoutAWish) {
  const AmpStrategy amp = checked("");
  EXPECT_EQ(choose_low_type(amp, {.low_types = {DType::kFloat16, DType::kBFloat16}}),
            DType::kFloat16);
  EXPECT_EQ(choose_low_type(amp, {.low_types = {DType::kBFloat16}}), DType::kBFloat16);
}

TEST(ChooseLowType, Wish_IsFollowedWherePossible) {
  const AmpStrategy amp = checked("dtype: 'bfloat16'");
  EXPECT_EQ(choose_low_type(amp, {.low_types = {DType::kFloat16, DType::kBFloat16}}),
            DType::kBFloat16);
  const std::string line = captured_log(
      [&] { EXPECT_EQ(choose_low_type(amp, {.low_types = {DType::kFloat16}}), DType::kFloat16); });
  EXPECT_NE(line, "");
}

TEST(Amp, NothingOffered_IsOffAndSaysWhy) {
  const std::string line = captured_log([&] {
    const PassContext old{.no_low_type = "this processor is old"};
    EXPECT_THAT(make_strategy("amp: true", old).names(), Not(Contains("amp")));
  });
  EXPECT_THAT(line, ::testing::AllOf(HasSubstr("float32"), HasSubstr("this processor is old")));
}

// What Paddle's rules would switch off beside amp acts where amp does not.
TEST(Amp, NothingOffered_SwitchesNothingOff) {
  for (const char* name :
       {"dgc", "fp16_allreduce", "bf16_allreduce", "localsgd", "adaptive_localsgd", "lars"}) {
    const bool wraps = std::string(name).ends_with("localsgd") || std::string(name) == "lars";
    const std::string both = std::string("amp: true ") + name + ": true";
    PassContext context{.ranks = 2, .no_low_type = "this processor is old"};
    EXPECT_THAT(make_strategy(both, context).names(), Contains(name));
    context.low_types = {DType::kBFloat16};
    const auto names = make_strategy(both, context).names();
    EXPECT_EQ(std::count(names.begin(), names.end(), name), wraps ? 1 : 0) << name;
  }
  const std::string three = "amp: true localsgd: true lars: true";
  const auto alone = make_strategy("localsgd: true lars: true", {.ranks = 2}).names();
  EXPECT_EQ(make_strategy(three, {.ranks = 2, .no_low_type = "this processor is old"}).names(),
            alone);
}

TEST(ChooseLowType, Bfloat16WithScalingKeys_SaysTheyHaveNoEffect) {
  const std::string line = captured_log(
      [&] { choose_low_type(checked("init_loss_scaling: 8"), {.low_types = {DType::kBFloat16}}); });
  EXPECT_NE(line, "");
  EXPECT_EQ(captured_log([] { choose_low_type(checked(""), {.low_types = {DType::kBFloat16}}); }),
            "");
}

// A whole training Program, with the optimizer.
Program trained(const std::string& text, const PassContext& context,
                const std::string& model = "resnet18", const std::string& settings = "{}") {
  return trained_program(text, context, {.model = model, .settings = settings});
}

std::vector<const Op*> all_of(const Program& program, const std::string& type) {
  std::vector<const Op*> found;
  for (const Op& op : program.ops()) {
    if (op.type() == type) found.push_back(&op);
  }
  return found;
}

const PassContext kBfloat16{.ranks = 2, .low_types = {DType::kBFloat16}};
const PassContext kFloat16{.ranks = 2, .low_types = {DType::kFloat16}};

// The number Paddle's users know from their logs: buckets of mixed types are split.
TEST(AmpStrategy, Resnet50_MakesTheKnownNumberOfBuckets) {
  const Program program = trained("amp: true", kFloat16, "resnet50", R"({"num_classes": 102})");
  EXPECT_EQ(all_of(program, "all_reduce").size(), 8u);
}

TEST(AmpStrategy, Float16_ScalesTheLossAndChecksBeforeTheUpdates) {
  const Program program = trained("amp: true", kFloat16);
  EXPECT_EQ(all_of(program, "fill").size(), 0u);
  const auto seed = all_of(program, "scale");
  ASSERT_EQ(seed.size(), 1u);
  EXPECT_EQ(program.var(seed[0]->inputs[0]).name, "optimizer.loss_scaling");
  EXPECT_EQ(seed[0]->attributes.number("scale"), 0.5);
  std::vector<std::string> order;  // of the optimizer's section
  const SectionId optimize = program.find_section("optimize");
  for (const Op& op : program.ops()) {
    if (op.section == optimize) order.push_back(op.type());
  }
  EXPECT_THAT(order, testing::ElementsAre("check_finite_and_unscale", "update_loss_scaling",
                                          "momentum", "momentum"));
  EXPECT_EQ(all_of(program, "check_finite_and_unscale")[0]->inputs.size(),
            1 + program.parameters().size());
}

TEST(AmpStrategy, Bfloat16_ScalesNothing) {
  const Program program = trained("amp: true", kBfloat16);
  EXPECT_EQ(program.find("optimizer.loss_scaling"), kNoVar);
  EXPECT_EQ(all_of(program, "check_finite_and_unscale").size(), 0u);
}

TEST(AmpStrategy, StaticScale_IsNotUpdated) {
  const Program program =
      trained("amp: true amp_configs { use_dynamic_loss_scaling: false }", kFloat16);
  EXPECT_EQ(all_of(program, "check_finite_and_unscale").size(), 1u);
  EXPECT_EQ(all_of(program, "update_loss_scaling").size(), 0u);
}

// No cast is needed but for the image and at the network's end, in both directions; the others are
// those of the refresh.
TEST(AmpStrategy, Resnet_HasNoNeedlessCasts) {
  const Program program = trained("amp: true", kBfloat16);
  std::vector<std::string> cast;
  for (const Op* op : all_of(program, "cast")) {
    const std::string section = program.sections()[op->section].name;
    if (section != "refresh") cast.push_back(section + " " + program.var(op->inputs[0]).name);
  }
  EXPECT_THAT(cast, testing::UnorderedElementsAre("forward image", "forward fc.out",
                                                  "evaluate image", "evaluate evaluate/fc.out",
                                                  "backward fc.out.as_float32@GRAD"));
}

TEST(AmpStrategy, Parameters_KeepFloat32AndGetCopiesWhereLowOperationsReadThem) {
  const Program program = trained("amp: true", kBfloat16);
  int copies = 0;
  for (VarId parameter : program.parameters()) {
    const Var& var = program.var(parameter);
    EXPECT_EQ(var.dtype, DType::kFloat32) << var.name;
    const bool is_norm = var.shape.rank() == 1 && var.name != "fc.bias";
    const VarId copy = program.copy_of(parameter);
    EXPECT_EQ(copy == kNoVar, is_norm) << var.name;
    EXPECT_EQ(program.var(program.gradient(parameter)).dtype,
              is_norm ? DType::kFloat32 : DType::kBFloat16)
        << var.name;
    if (copy == kNoVar) continue;
    ++copies;
    EXPECT_EQ(program.var(copy).name, var.name + "@bfloat16");
    EXPECT_FALSE(is_saved(program.var(copy)));
  }
  EXPECT_EQ(copies, 22);
}

TEST(FuseResunit, SetOnAGpu_ChangesNothingAndSaysSo) {
  const PassContext gpu{.low_types = {DType::kFloat16}, .no_low_type = {}, .backend = "cuda"};
  Program program;
  const std::string line = captured_log(
      [&] { program = trained("amp: true build_strategy { fuse_resunit: true }", gpu); });
  EXPECT_THAT(line, HasSubstr("build_strategy.fuse_resunit has no effect"));
  EXPECT_EQ(print_text(program), print_text(trained("amp: true", gpu)));
}

TEST(Fp16AllReduce, Gradients_TravelInFloat16) {
  const Program program = trained("fp16_allreduce: true", {.ranks = 2});
  for (const Op* op : all_of(program, "all_reduce")) {
    for (VarId id : op->inputs) EXPECT_EQ(program.var(id).dtype, DType::kFloat16);
  }
  EXPECT_EQ(all_of(program, "cast").size(), program.parameters().size());
  EXPECT_EQ(all_of(trained("fp16_allreduce: true", {}), "cast").size(), 0u);
}

TEST(Bf16AllReduce, Gradients_TravelInBFloat16) {
  const Program program = trained("bf16_allreduce: true", {.ranks = 2});
  for (const Op* op : all_of(program, "all_reduce")) {
    for (VarId id : op->inputs) EXPECT_EQ(program.var(id).dtype, DType::kBFloat16);
  }
  EXPECT_EQ(all_of(program, "cast").size(), program.parameters().size());
}

TEST(Bf16AllReduce, WithFp16AllReduce_IsSwitchedOff) {
  EXPECT_THAT(make_strategy("fp16_allreduce: true bf16_allreduce: true", {.ranks = 2}).names(),
              Not(Contains("bf16_allreduce")));
}

TEST(Fp16AllReduce, WithAmp_IsSwitchedOff) {
  EXPECT_THAT(make_strategy("fp16_allreduce: true amp: true", kBfloat16).names(),
              Not(Contains("fp16_allreduce")));
}

}  // namespace
}  // namespace fleet
