#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.SGD(lr=.1, momentum=.9, weight_decay=.01)
TEST(Momentum, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "momentum", "weight_decay": 0.01})", {torch_recipe()});
  expect_all_near(rules.run(), {0.897382796, -2.02312565, 0.372981369});
}

// torch.optim.SGD(lr=.1, momentum=.9, weight_decay=.01, nesterov=True)
TEST(Momentum, TorchRecipeWithNesterov_GivesItsValues) {
  Rules rules(R"({"name": "momentum", "use_nesterov": true, "weight_decay": 0.01})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.869858325, -2.04736114, 0.284312904});
}

// Many elements, so that several threads share them; in double as the header of the rule says it.
TEST(Momentum, ManyElements_MatchesNaiveFormula) {
  const int count = 100003;
  Trained trained{"w", std::vector<float>(count), {std::vector<float>(count), {}, {}}};
  for (int i = 0; i < count; ++i) {
    trained.start[i] = static_cast<float>(i % 17) / 8 - 1;
    trained.gradients[0][i] = static_cast<float>(i % 29) / 16 - 1;
  }
  trained.gradients[1] = trained.gradients[2] = trained.gradients[0];
  std::vector<double> want(trained.start.begin(), trained.start.end()), velocity(count);
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < count; ++i) {
      velocity[i] = 0.8 * velocity[i] + trained.gradients[step][i] + 0.1 * want[i];
      want[i] -= 0.1 * velocity[i];
    }
  }
  Rules rules(R"({"name": "momentum", "momentum": 0.8, "weight_decay": 0.1})", {trained});
  expect_all_near(rules.run(), want);
}

TEST(Momentum, State_IsNamedAfterItsParameter) {
  Rules rules(R"({"name": "momentum"})", {{"conv1.weight", {1, 2}, {{0.5f, -1}}}});
  rules.run();
  EXPECT_EQ(rules.values("conv1.weight.momentum"), (std::vector<float>{0.5f, -1}));
}

// The update runs where the blocks lie: the velocity takes the parameter's layout.
TEST(Momentum, BlockedParameter_UpdatesInItsLayout) {
  const Shape shape{20, 3, 2, 2};
  const Layout blocked = Layout::blocked({32, 3, 2, 2}, {192, 64, 32, 16}, {{0, 16}});
  Trained trained{"w", std::vector<float>(240), {std::vector<float>(240), {}}};
  for (int i = 0; i < 240; ++i) {
    trained.start[i] = static_cast<float>(i);
    trained.gradients[0][i] = static_cast<float>(i % 7);
  }
  trained.gradients[1] = trained.gradients[0];
  const std::string json = R"({"name": "momentum", "weight_decay": 0.01})";
  Rules plain(json, {trained}, shape), laid_out(json, {trained}, shape, blocked);
  EXPECT_EQ(laid_out.run(), plain.run());
  Executor& executor = laid_out.executor();
  EXPECT_EQ(executor.argument(executor.program().find("w.momentum")).layout, blocked);
  const VarId w = executor.program().find("w");
  std::vector<float> raw(executor.argument(w).bytes() / sizeof(float));
  executor.copy_out(w, raw);
  executor.synchronize();
  double padding = 0;  // of output channels 20..31: the upper part of the second block
  for (int i = 192; i < 384; ++i) padding += i % 16 >= 4 ? std::abs(raw[i]) : 0;
  EXPECT_EQ(padding, 0);
}

}  // namespace
}  // namespace fleet
