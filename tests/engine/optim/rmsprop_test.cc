#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.RMSprop(lr=.1, weight_decay=.01)
TEST(RmsProp, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "rmsprop", "weight_decay": 0.01})", {torch_recipe()});
  expect_all_near(rules.run(), {-0.522488236, -2.10433435, -0.710717618});
  EXPECT_EQ(rules.executor().program().find("w.mean"), kNoVar);
  EXPECT_EQ(rules.executor().program().find("w.momentum"), kNoVar);
}

// torch.optim.RMSprop(lr=.1, momentum=.9, alpha=.9, eps=1e-3)
TEST(RmsProp, TorchRecipeWithMomentum_GivesItsValues) {
  Rules rules(R"({"name": "rmsprop", "momentum": 0.9, "alpha": 0.9, "epsilon": 1e-3})",
              {torch_recipe()});
  expect_all_near(rules.run(), {-0.272796988, -1.78492773, -0.208977371});
}

// torch.optim.RMSprop(lr=.1, centered=True, alpha=.9)
TEST(RmsProp, TorchRecipeCentered_GivesItsValues) {
  Rules rules(R"({"name": "rmsprop", "centered": true, "alpha": 0.9})", {torch_recipe()});
  expect_all_near(rules.run(), {0.480121493, -2.04873562, 0.0888831913});
}

// torch.optim.RMSprop(lr=.1, centered=True, momentum=.9, weight_decay=.01, alpha=.95)
TEST(RmsProp, TorchRecipeCenteredWithMomentum_GivesItsValues) {
  Rules rules(R"({"name": "rmsprop", "centered": true, "momentum": 0.9, "weight_decay": 0.01,
                  "alpha": 0.95})",
              {torch_recipe()});
  expect_all_near(rules.run(), {-0.902574658, -1.6136173, -0.562784255});
}

// With alpha 0 the mean square is the square of the mean: rounding may bring their difference
// below 0, whose root would be NaN.
TEST(RmsProp, CenteredWithoutDeviation_StaysFinite) {
  Trained trained{"w", std::vector<float>(1000, 0.f), {std::vector<float>(1000)}};
  for (int i = 0; i < 1000; ++i) trained.gradients[0][i] = static_cast<float>(i) / 7 + 0.1f;
  Rules rules(R"({"name": "rmsprop", "centered": true, "alpha": 0, "epsilon": 1})", {trained});
  for (float value : rules.run()) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace fleet
