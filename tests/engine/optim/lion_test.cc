#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// NumPy: p -= .1 (sign(.9 m + .1 g) + .1 p); m = .99 m + .01 g
TEST(Lion, TorchRecipe_GivesNumPysValues) {
  Rules rules(R"({"name": "lion", "weight_decay": 0.1})", {torch_recipe()});
  expect_all_near(rules.run(), {0.873289, -2.041588, 0.3861395});
  expect_all_near(rules.values("w.momentum"), {0.0034301, 0.0032498, 0.00997030}, 1e-5);
}

// The same with betas of .5: the momentum turns the first element's last step around.
TEST(Lion, TorchRecipeWithOtherBetas_GivesNumPysValues) {
  Rules rules(R"({"name": "lion", "beta1": 0.5, "beta2": 0.5, "weight_decay": 0.1})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.673289, -2.041588, 0.3861395});
}

TEST(Lion, ZeroGradient_OnlyDecays) {
  Rules rules(R"({"name": "lion", "weight_decay": 0.5})", {{"w", {2, -4}, {{0, 0}}}});
  expect_all_near(rules.run(), {1.9, -3.8});
}

TEST(Lion, ManyElements_MatchesNaiveFormula) {
  const int count = 50021;
  Trained trained{"w", std::vector<float>(count), {std::vector<float>(count), {}}};
  for (int i = 0; i < count; ++i) {
    trained.start[i] = static_cast<float>(i % 17) / 8 - 1;
    trained.gradients[0][i] = static_cast<float>(i % 29) / 16 - 1;
  }
  trained.gradients[1] = trained.gradients[0];
  std::vector<double> want(trained.start.begin(), trained.start.end());
  for (int i = 0; i < count; ++i) {
    const double g = trained.gradients[0][i];
    want[i] -= 2 * 0.1 * (g > 0 ? 1 : g < 0 ? -1 : 0);
  }
  Rules rules(R"({"name": "lion"})", {trained});
  expect_all_near(rules.run(), want);
}

}  // namespace
}  // namespace fleet
