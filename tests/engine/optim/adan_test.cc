#include <cmath>
#include <string>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// The authors' code, computed in double on the gradients of torch_recipe():
// Adan(lr=.1, weight_decay=.02), https://github.com/sail-sg/Adan
TEST(Adan, Recipe_GivesTheValuesOfTheAuthorsCode) {
  Rules rules(R"({"name": "adan", "weight_decay": 0.02})", {torch_recipe()});
  expect_all_near(rules.run(), {0.816940885, -1.98076636, 0.40028482});
}

// Adan(lr=.1, betas=(.9, .8, .95), eps=1e-3, weight_decay=.1, no_prox=True)
TEST(Adan, RecipeWithoutProximalDecay_GivesTheValuesOfTheAuthorsCode) {
  Rules rules(R"({"name": "adan", "beta1": 0.9, "beta2": 0.8, "beta3": 0.95, "epsilon": 1e-3,
                  "weight_decay": 0.1, "no_prox": true})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.797021331, -1.93720579, 0.386001213});
}

TEST(Adan, States_AreFourAndThePreviousGradientIsOne) {
  const Trained trained = torch_recipe();
  Rules rules(R"({"name": "adan"})", {trained});
  rules.run();
  for (const char* state : {"moment", "difference", "square"}) {
    EXPECT_NE(rules.executor().program().find(std::string("w.") + state), kNoVar) << state;
  }
  EXPECT_EQ(rules.values("w.previous_gradient"), trained.gradients.back());
}

// The difference counts as 0 in the first update: a step of the size of the rate, as Adam's.
TEST(Adan, FirstUpdate_HasNoDifference) {
  Rules rules(R"({"name": "adan"})", {{"w", {1, 1}, {{0.5f, -3}}}});
  expect_all_near(rules.run(0.1f), {0.9, 1.1});
  EXPECT_EQ(rules.values("w.difference"), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace fleet
