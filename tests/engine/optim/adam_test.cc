#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.Adam(lr=.1, weight_decay=.01)
TEST(Adam, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "adam", "weight_decay": 0.01})", {torch_recipe()});
  expect_all_near(rules.run(), {0.779131949, -1.96915329, 0.346064627});
}

// torch.optim.AdamW(lr=.1, weight_decay=.1)
TEST(AdamW, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "adamw", "weight_decay": 0.1})", {torch_recipe()});
  expect_all_near(rules.run(), {0.755422831, -1.92329216, 0.335123718});
}

// torch.optim.Adam(lr=.1, betas=(.9, .5), weight_decay=.01, amsgrad=True): the formula in double
TEST(Adam, Amsgrad_DividesByTheLargestMoment) {
  Rules rules(R"({"name": "adam", "amsgrad": true, "beta2": 0.5, "weight_decay": 0.01})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.794929524, -1.96073931, 0.357427467});
  EXPECT_NE(rules.executor().program().find("w.max_moment2"), kNoVar);
}

TEST(AdamW, Default_Decays) {
  EXPECT_EQ(optimizer_settings(R"({"name": "adamw"})").number("weight_decay"), 0.01);
  EXPECT_EQ(optimizer_settings(R"({"name": "adam"})").number("weight_decay"), 0);
}

// Both parameters count the same steps, and each step once.
TEST(Adam, TwoParameters_MatchNaiveFormula) {
  Trained first = torch_recipe("a"), second = torch_recipe("b");
  second.start = {3, 0, -1};
  Rules rules(R"({"name": "adam", "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3})", {first, second});
  rules.run();
  for (const Trained& trained : {first, second}) {
    std::vector<double> p(trained.start.begin(), trained.start.end()), m(3), v(3);
    for (int t = 1; t <= 3; ++t) {
      for (int i = 0; i < 3; ++i) {
        const double g = trained.gradients[t - 1][i];
        m[i] = 0.8 * m[i] + 0.2 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        const double bounded = std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-3;
        p[i] -= 0.1 * m[i] / (1 - std::pow(0.8, t)) / bounded;
      }
    }
    expect_all_near(rules.values(trained.name), p);
  }
  Executor& executor = rules.executor();
  EXPECT_EQ(executor.values<int64_t>(executor.program().find("optimizer.step"))[0], 3);
  EXPECT_NE(executor.program().find("a.moment1"), kNoVar);
  EXPECT_NE(executor.program().find("b.moment2"), kNoVar);
}

}  // namespace
}  // namespace fleet
