// oneDNN's implementations in a ResNet50: a single primitive in reference loops costs more than all
// the others together.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backend/cpu/dnnl_glue.h"
#include "base/cpu.h"
#include "exec/plan.h"
#include "models/model.h"
#include "models/training.h"
#include "strategy/strategy.h"
#include "tensor/host.h"

namespace fleet {
namespace {

Plan plan_of(const std::string& model, int64_t batch) {
  ConfigTree tree;
  Program program;
  const Training training =
      build_training(program, {.model = model,
                               .model_settings = tree.validate(model_registry().get(model).schema),
                               .batch = batch,
                               .columns = image_columns(model_registry().get(model).image)});
  Strategy().append_backward(program, training.forward, training.loss);
  return plan_program(std::move(program), {training.loss});
}

// Makes the kernel as the executor would; nothing is run, so any address serves as its memory.
std::string implementation(const PlannedOp& planned, const Program& program) {
  static HostDevice device;
  static const Buffer nowhere = device.allocate(4096);
  const auto arguments = [&](const std::vector<VarId>& ids, const std::vector<Layout>& layouts) {
    std::vector<Argument> made(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == kNoVar) continue;
      const Var& var = program.var(ids[i]);
      made[i] = {nowhere.data(), var.dtype, var.shape, layouts[i]};
    }
    return made;
  };
  KernelContext context{.op = planned.op,
                        .inputs = arguments(planned.op.inputs, planned.input_layouts),
                        .outputs = arguments(planned.op.outputs, planned.output_layouts),
                        .workspace = nowhere.data(),
                        .device = device};
  const auto kernel = planned.kernel->create(context);
  const auto* primitive = dynamic_cast<const cpu::PrimitiveKernel*>(kernel.get());
  return primitive ? primitive->implementation() : "";
}

std::map<std::string, std::set<std::string>> implementations(const Plan& plan) {
  static const std::set<std::string> kTypes = {
      "conv2d",          "conv2d_data_grad", "conv2d_weight_grad", "batch_norm",
      "batch_norm_grad", "pool2d",           "pool2d_grad",        "fc",
      "fc_data_grad",    "fc_weight_grad"};
  std::map<std::string, std::set<std::string>> found;
  for (const PlannedOp& planned : plan.ops) {
    if (!kTypes.contains(planned.op.type())) continue;
    found[planned.op.type()].insert(implementation(planned, plan.program));
  }
  return found;
}

TEST(ResNet50, NoPrimitiveFallsToTheReferenceLoops) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "oneDNN is quick from AVX2 on";
  const auto found = implementations(plan_of("resnet50", 16));
  EXPECT_EQ(found.size(), 10u);
  for (const auto& [type, names] : found) {
    for (const std::string& name : names) {
      // Empty: loops of our own, such as Winograd's method and max pooling on AVX2.
      EXPECT_EQ(name.find("ref"), std::string::npos) << type << ": " << name;
      if (type.starts_with("conv2d")) {
        EXPECT_EQ(name.find("gemm"), std::string::npos) << type << ": " << name;
      }
    }
  }
}

TEST(MobileNetV1, NoPrimitiveFallsToTheReferenceLoops) {
  const auto found = implementations(plan_of("mobilenet_v1", 4));
  EXPECT_GE(found.size(), 8u);
  for (const auto& [type, names] : found) {
    for (const std::string& name : names) {
      EXPECT_EQ(name.find("ref"), std::string::npos) << type << ": " << name;
    }
  }
}

TEST(ResNet50, OnlySmallThingsAreReorderedInAStep) {
  const Plan plan = plan_of("resnet50", 16);
  int64_t images = 0;
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "reorder") continue;
    if (plan.program.sections()[planned.op.section].name == "evaluate") continue;
    const Var& var = plan.program.var(planned.op.inputs[0]);
    const bool is_weight = var.kind == VarKind::kParameter;  // for the data gradients
    if (!is_weight) images += var.shape.elements();
    EXPECT_EQ(planned.op.inputs.size(), 1u);
  }
  // The pooled features and their gradient: 16 x 2048 each.
  EXPECT_LE(images, 2 * 16 * 2048);
}

}  // namespace
}  // namespace fleet
