// The layouts of a network with branches.
#include <gtest/gtest.h>

#include <set>

#include "backend/cpu/device.h"
#include "base/cpu.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

// GoogLeNet on small images.
class GoogLeNet {
 public:
  explicit GoogLeNet(Device& device) {
    const ModelDef& def = model_registry().get("googlenet");
    Program program;
    training_ = build_training(
        program, {.model = "googlenet",
                  .model_settings =
                      ConfigTree::from_json(R"({"num_classes": 10})", "test").validate(def.schema),
                  .batch = 2,
                  .columns = image_columns(kImage)});
    Strategy rewrites = make_strategy("");
    rewrites.append_backward(program, training_.forward, training_.loss);
    rewrites.append_optimizer(training_.feed("learning_rate"),
                              ConfigTree::from_json(R"({"name": "momentum"})", "test")
                                  .validate(optimizer_schema("momentum")));
    executor_ = std::make_unique<Executor>(
        plan_program(std::move(program), {training_.loss}, {.device = &device}), device, nullptr);
  }

  Plan const& plan() const { return executor_->plan(); }

 private:
  static inline const Shape kImage{3, 32, 32};
  Training training_;
  std::unique_ptr<Executor> executor_;
};

// Branches end in the layouts of convolutions, and so do their gradients.
TEST(LayoutsOnCpu, BranchesOfGoogLeNet_AreJoinedWithoutReorders) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "other layouts";
  cpu::CpuDevice device;
  const GoogLeNet net(device);
  std::set<VarId> reordered;
  int joined = 0;
  for (const PlannedOp& planned : net.plan().ops) {
    const Op& op = planned.op;
    if (op.type() == "reorder") reordered.insert(op.outputs[0]);
    if (op.type() != "concat" && op.type() != "slice") continue;
    ++joined;
    for (const VarId id : op.inputs) {
      EXPECT_FALSE(reordered.contains(id)) << net.plan().program.var(id).name;
    }
  }
  EXPECT_EQ(joined, 9 * (1 + 1 + 4));  // training, evaluation, gradients of four branches
}

}  // namespace
}  // namespace fleet
