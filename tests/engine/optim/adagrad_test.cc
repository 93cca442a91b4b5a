#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.Adagrad(lr=.1)
TEST(Adagrad, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "adagrad"})", {torch_recipe()});
  expect_all_near(rules.run(), {0.845964432, -2.01636171, 0.378653228});
}

// torch.optim.Adagrad(lr=.1, lr_decay=.5, weight_decay=.01, initial_accumulator_value=.1, eps=1e-3)
TEST(Adagrad, TorchRecipeWithEveryKey_GivesItsValues) {
  Rules rules(R"({"name": "adagrad", "lr_decay": 0.5, "weight_decay": 0.01,
                  "initial_accumulator_value": 0.1, "epsilon": 1e-3})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.929957092, -1.99931467, 0.423697054});
}

TEST(Adagrad, State_SumsTheSquares) {
  Rules rules(R"({"name": "adagrad", "initial_accumulator_value": 1})",
              {{"conv1.weight", {1, 2}, {{0.5f, -1}, {0.5f, 2}}}});
  rules.run();
  EXPECT_EQ(rules.values("conv1.weight.sum"), (std::vector<float>{1.5f, 6}));
}

}  // namespace
}  // namespace fleet
