// The training steps of image networks in mixed precision, planned for a GPU that is not there:
// every operation that only changes the type, the layout or the order of elements. Each that is
// left is listed here, with the bytes that it reads and writes and the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/plan.h"
#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

constexpr int64_t kBatch = 8;

Plan plan_of(const std::string& name, DType low) {
  Program program;
  ConfigTree model = ConfigTree::from_json("{}", "test");
  const Training training = build_training(
      program, {.model = name,
                .model_settings = model.validate(model_registry().get(name).schema),
                .batch = kBatch,
                .columns = image_columns({3, 224, 224}),
                .bytes = Normalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}});
  Strategy strategy = make_strategy(
      "amp: true",
      {.low_types = {low},
       .no_low_type = {},
       .backend = "cuda",
       .backend_passes = {"fuse_fc_gelu", "fuse_bn_recomputed_act", "fuse_depthwise_norm"}});
  strategy.append_backward(program, training.forward, training.loss);
  ConfigTree momentum =
      ConfigTree::from_json(R"({"name": "momentum", "weight_decay": 1e-4})", "test");
  strategy.append_optimizer(training.feed("learning_rate"),
                            momentum.validate(optimizer_schema("momentum")));
  return plan_program(
      std::move(program),
      {training.loss, training.training_sum("losses"), training.training_sum("counts"),
       training.evaluation_sum("losses"), training.evaluation_sum("counts")},
      {.backend = "cuda", .initial_layouts = {}, .device = nullptr});
}

// Whether the operation's output is its input, in the same memory.
bool moves_nothing(const Plan& plan, const Op& op) {
  const PlannedVar &from = plan.vars[op.inputs[0]], &to = plan.vars[op.outputs[0]];
  return from.region == Region::kArena && to.region == Region::kArena && from.offset == to.offset &&
         from.bytes == to.bytes;
}

// "type variable bytes" of each operation of the training step that only moves elements.
std::vector<std::string> moves(const Plan& plan) {
  std::vector<std::string> found;
  for (const PlannedOp& planned : plan.ops) {
    const Op& op = planned.op;
    if (!plan.program.sections()[op.section].when.training) continue;
    const bool casts = op.type() == "cast";
    if (!casts && op.type() != "reorder" && op.type() != "transpose") continue;
    if (!casts && moves_nothing(plan, op)) continue;
    const VarId from = op.inputs[0], to = op.outputs[0];
    found.push_back(op.type() + " " + plan.program.var(from).name + " " +
                    std::to_string(plan.vars[from].bytes + plan.vars[to].bytes));
  }
  return found;
}

// One of moves() at kBatch, and why it is left.
struct Allowed {
  std::string move;
  const char* reason;
};

struct Case {
  const char* name;
  DType low;
  std::vector<Allowed> allowed;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class CudaMoves : public testing::TestWithParam<Case> {};

TEST_P(CudaMoves, TrainingStep_HasOnlyTheListedOnes) {
  std::vector<std::string> allowed;
  for (const Allowed& one : GetParam().allowed) allowed.push_back(one.move);
  EXPECT_LE(allowed.size(), 10u);
  const Plan plan = plan_of(GetParam().name, GetParam().low);
  EXPECT_THAT(moves(plan), testing::UnorderedElementsAreArray(allowed));
}

constexpr const char* kLoss = "losses and their gradients are float32";
constexpr const char* kFew = "cuDNN loads channels by 16 bytes: a pixel of fewer is padded";
constexpr const char* kToken = "the class token, a float32 parameter, is spread over the batch";

// The logits of 1,000 classes, and their gradient.
std::vector<Allowed> loss_of(const std::string& layer) {
  return {{"cast " + layer + ".out 48000", kLoss},
          {"cast " + layer + ".out.as_float32@GRAD 48000", kLoss}};
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"vit_b_16", DType::kBFloat16, loss_of("heads.head")},
                           {"convnext_tiny", DType::kBFloat16, loss_of("classifier.2")},
                           {"efficientnet_b0", DType::kFloat16, loss_of("classifier.1")},
                           {"mobilenet_v2", DType::kFloat16, loss_of("classifier.1")},
                           {"mobilenet_v3_large", DType::kFloat16, loss_of("classifier.3")}};
  for (const char* move :
       {"cast elementwise_add.out 36864", "cast elementwise_add.out.as_bfloat16@GRAD 36864"}) {
    all[0].allowed.push_back({move, kToken});
  }
  // Squeezed to 4 and 6 channels.
  for (const char* move : {"reorder silu.out_5 192", "reorder silu.out_8 224",
                           "reorder silu.out_11 224", "reorder silu.out_5@GRAD 192",
                           "reorder silu.out_8@GRAD 224", "reorder silu.out_11@GRAD 224"}) {
    all[2].allowed.push_back({move, kFew});
  }
  return all;
}

int trained(const Plan& plan, const std::string& type) {
  return static_cast<int>(
      std::count_if(plan.ops.begin(), plan.ops.end(), [&](const PlannedOp& planned) {
        return planned.op.type() == type &&
               plan.program.sections()[planned.op.section].when.training;
      }));
}

// Every depthwise convolution sums its result, and reads the input of the relu6 before it.
TEST(CudaFusions, MobilenetV2_ComputesNoActivationByItself) {
  const Plan plan = plan_of("mobilenet_v2", DType::kFloat16);
  EXPECT_EQ(trained(plan, "relu6") + trained(plan, "relu6_grad"), 0);
  EXPECT_EQ(trained(plan, "conv2d_sums"), 17);
  EXPECT_EQ(trained(plan, "conv2d_sums_weight_grad"), 17);
  EXPECT_EQ(trained(plan, "conv2d_relu_norm_grad"), 17);
}

// The silus that are left are those of squeeze-excitation, which follow no normalization; the
// gradients of what it reads twice are added inside the normalization's.
TEST(CudaFusions, EfficientnetB0_ComputesSilusInNormalizations) {
  const Plan plan = plan_of("efficientnet_b0", DType::kFloat16);
  EXPECT_EQ(trained(plan, "silu"), 16);
  EXPECT_EQ(trained(plan, "silu_grad"), 16);
  EXPECT_EQ(trained(plan, "conv2d_sums"), 16);
  EXPECT_EQ(trained(plan, "conv2d_relu_norm_grad"), 0) << "a silu is not computed on the fly";
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "sum") continue;
    EXPECT_LE(plan.vars[planned.op.outputs[0]].layout.elements(), kBatch * 3 * 224 * 224)
        << plan.program.var(planned.op.outputs[0]).name;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaMoves, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fleet
