#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.NAdam in double on the gradients of torch_recipe().
TEST(Nadam, Recipe_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "nadam"})", {torch_recipe()});
  expect_all_near(rules.run(), {0.832747656, -2.01887642, 0.360100793});
}

// NAdam(lr=.1, weight_decay=.05, betas=(.8, .95), eps=1e-3, momentum_decay=.01)
TEST(Nadam, RecipeWithOtherSettings_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "nadam", "weight_decay": 0.05, "beta1": 0.8, "beta2": 0.95,
                  "epsilon": 1e-3, "momentum_decay": 0.01})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.812189073, -1.97410448, 0.344409241});
}

// NAdam(lr=.1, weight_decay=.05, decoupled_weight_decay=True)
TEST(Nadam, DecoupledDecay_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "nadam", "weight_decay": 0.05, "decoupled": true})", {torch_recipe()});
  expect_all_near(rules.run(), {0.819394877, -1.9896267, 0.353344786});
}

// NAdam(lr=.1, weight_decay=.05) after 20 steps.
TEST(Nadam, TwentySteps_GiveTheValuesOfPyTorch) {
  Rules rules(R"({"name": "nadam", "weight_decay": 0.05})", {twenty_steps(12)});
  expect_all_near(
      rules.run(),
      {-0.7729005575, -0.1064303897, -0.6427240893, 0.3045749888, -0.5511193319, 0.6896968084,
       -0.4973032416, 1.056611457, -0.4719726258, 1.412425065, -0.4581956639, -1.195407642},
      1e-5);
}

// The momentum's product of 600 factors is computed as a series.
TEST(Nadam, ManyUpdates_GiveTheValueOfPyTorch) {
  Trained one{.name = "w", .start = {1}, .gradients = {}};
  for (int i = 0; i < 600; ++i) one.gradients.push_back({i % 3 ? 0.3f : -0.2f});
  Rules rules(R"({"name": "nadam"})", {one});
  EXPECT_NEAR(rules.run(0.001f)[0], 0.70716615, 2e-5);
}

}  // namespace
}  // namespace fleet
