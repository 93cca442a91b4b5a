// Networks whose images have their channels last, as with AMX.
#include "backend/cpu/image_layout.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backend/cpu/channel_runs.h"
#include "exec/plan.h"
#include "models/model.h"
#include "models/training.h"
#include "passes/pass.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

// For one test.
class ImageLayoutVariable {
 public:
  explicit ImageLayoutVariable(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    ::setenv(kName, value, 1);
  }
  ~ImageLayoutVariable() {
    before_.empty() ? ::unsetenv(kName) : ::setenv(kName, before_.c_str(), 1);
  }

 private:
  static constexpr char kName[] = "FLEET_IMAGE_LAYOUT";
  std::string before_;
};

TEST(ImageLayout, ImplementationsWithAmx_AreKnownByTheirNames) {
  EXPECT_TRUE(cpu::uses_amx("brgconv:avx512_core_bf16_amx_bf16"));
  EXPECT_TRUE(cpu::uses_amx("jit:avx512_core_amx_bf16"));
  EXPECT_FALSE(cpu::uses_amx("brgconv:avx512_core_bf16"));
  EXPECT_FALSE(cpu::uses_amx("jit_bf16:avx512_core_bf16"));
}

TEST(ImageLayout, Float32WithoutTheVariable_KeepsBlocks) {
  const ImageLayoutVariable none("");
  EXPECT_FALSE(cpu::prefers_channels_last(DType::kFloat32));
}

TEST(ImageLayout, UnknownValueOfTheVariable_IsRefused) {
  const ImageLayoutVariable wrong("nhwc");
  EXPECT_EQ(thrown_by([] { cpu::prefers_channels_last(DType::kFloat32); }).code(),
            ErrorCode::kUsage);
}

// A training step with the passes that the trainer runs.
Plan channels_last_plan(const std::string& model, const std::string& strategy) {
  const ModelDef& def = model_registry().get(model);
  Program program;
  const Training training =
      build_training(program, {.model = model,
                               .model_settings = ConfigTree().validate(def.schema),
                               .batch = 2,
                               .columns = image_columns({3, 64, 64})});
  Strategy rewrites = make_strategy(strategy, {.low_types = {DType::kBFloat16}});
  run_pass("fuse_bn_recomputed_act", program, {});
  rewrites.append_backward(program, training.forward, training.loss);
  rewrites.append_optimizer(training.feed("learning_rate"),
                            ConfigTree::from_json(R"({"name": "momentum"})", "test")
                                .validate(optimizer_schema("momentum")));
  return plan_program(std::move(program), {training.loss});
}

class ChannelsLast : public testing::TestWithParam<std::string> {};

TEST_P(ChannelsLast, StepOfANetwork_ReordersNoImage) {
  if (cpu::native_channel_block() < 16) GTEST_SKIP() << "convolutions want AVX-512";
  const ImageLayoutVariable last("channels_last");
  for (const std::string strategy : {"", "amp: true"}) {
    const Plan plan = channels_last_plan(GetParam(), strategy);
    int convolutions = 0;
    for (const PlannedOp& planned : plan.ops) {
      const Op& op = planned.op;
      convolutions += op.type().starts_with("conv2d");
      if (op.type() != "reorder") continue;
      const Var& var = plan.program.var(op.inputs[0]);
      const bool is_batch = var.shape.rank() == 4 && var.shape[0] == 2;
      EXPECT_FALSE(is_batch && var.shape[1] > 3 && var.shape[2] > 1)
          << var.name << " " << var.shape.text();
    }
    EXPECT_GT(convolutions, 20 * 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ChannelsLast,
                         testing::Values("resnet18", "resnet50", "mobilenet_v2",
                                         "mobilenet_v3_large", "efficientnet_b0", "densenet121",
                                         "googlenet"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fleet
