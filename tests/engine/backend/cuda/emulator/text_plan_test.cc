// A GPU's Plans of networks of attention, made without a device: operations that only pass over
// memory beside the products.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "exec/plan.h"
#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

Settings default_settings(const std::string& model, const std::string& json) {
  ConfigTree tree = ConfigTree::from_json(json, "test");
  return tree.validate(model_registry().get(model).schema);
}

TrainingOptions gpt2_options() {
  TrainingOptions options = {
      .model = "gpt2",
      .model_settings = default_settings(
          "gpt2", R"({"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0, "n_layer": 3})"),
      .task = "causal_lm",
      .task_settings = TrainingOptions::default_task_settings("causal_lm"),
      .batch = 2};
  for (const char* name : {"input_ids", "position_ids", "document_ids", "labels"}) {
    options.columns.push_back({name, DType::kInt64, {64}});
  }
  options.columns.push_back({"loss_weight", DType::kFloat32, {64}});
  return options;
}

TrainingOptions vit_options() {
  return {.model = "vit_b_16",
          .model_settings = default_settings("vit_b_16", "{}"),
          .batch = 2,
          .columns = image_columns({3, 224, 224})};
}

// Operations of the training step in bfloat16, by type.
std::map<std::string, int> counts(const TrainingOptions& options, bool fuses) {
  Program program;
  const Training training = build_training(program, options);
  PassContext context = {.low_types = {DType::kBFloat16}, .no_low_type = {}, .backend = "cuda"};
  if (fuses) context.backend_passes = {"fuse_fc_gelu"};
  Strategy strategy = make_strategy("amp: true", context);
  strategy.append_backward(program, training.forward, training.loss);
  ConfigTree adamw = ConfigTree::from_json(R"({"name": "adamw"})", "test");
  strategy.append_optimizer(training.feed("learning_rate"),
                            adamw.validate(optimizer_schema("adamw")));
  const Plan plan = plan_program(std::move(program), {training.loss},
                                 {.backend = "cuda", .initial_layouts = {}, .device = nullptr});
  std::map<std::string, int> found;
  for (const PlannedOp& planned : plan.ops) {
    if (plan.program.sections()[planned.op.section].when.training) ++found[planned.op.type()];
  }
  return found;
}

TEST(CudaTextPlan, Gpt2InBFloat16_HasGeluInItsProducts) {
  std::map<std::string, int> apart = counts(gpt2_options(), false);
  EXPECT_EQ(apart["gelu"], 3);
  EXPECT_EQ(apart["gelu_grad"], 3);
  std::map<std::string, int> fused = counts(gpt2_options(), true);
  EXPECT_EQ(fused["gelu"] + fused["gelu_grad"], 0);
  EXPECT_EQ(fused["fc_gelu"], 3);
  EXPECT_EQ(fused["fc_gelu_data_grad"], 3);
  // Nothing else changes: biases and their gradients are in the products in either case.
  for (const char* type : {"cast", "elementwise_add", "sum", "fc_weight_grad", "reorder"}) {
    EXPECT_EQ(fused[type], apart[type]) << type;
  }
}

// Its gelu has the form by the error function, which cuBLASLt has not.
TEST(CudaTextPlan, VitInBFloat16_KeepsItsGelu) {
  std::map<std::string, int> apart = counts(vit_options(), false);
  std::map<std::string, int> fused = counts(vit_options(), true);
  EXPECT_EQ(apart["gelu"], 12);
  EXPECT_EQ(fused, apart);
}

// q, k and v lie in the product that makes them: no scores in memory, no slices or transposes of
// heads. One slice takes the class token; the gradient of the tokens' concat has two.
TEST(CudaTextPlan, VitInBFloat16_ReadsQueriesKeysAndValuesInPlace) {
  std::map<std::string, int> found = counts(vit_options(), true);
  EXPECT_EQ(found["attention"], 12);
  EXPECT_EQ(found["attention_grad"], 12);
  EXPECT_EQ(found["add_layer_norm"], 12);
  EXPECT_EQ(found["elementwise_add"], 12 + 2);  // positions and the class token beside the layers
  EXPECT_LE(found["slice"] + found["slice_grad"], 4);
  for (const char* type : {"softmax", "softmax_grad", "matmul", "scale"}) {
    EXPECT_LE(found[type], 1) << type;
  }
}

}  // namespace
}  // namespace fleet
