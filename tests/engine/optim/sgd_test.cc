#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// torch.optim.SGD(lr=.1, weight_decay=.01)
TEST(Sgd, TorchRecipe_GivesItsValues) {
  Rules rules(R"({"name": "sgd", "weight_decay": 0.01})", {torch_recipe()});
  expect_all_near(rules.run(), {0.962072968, -2.02650595, 0.398531467});
}

TEST(Sgd, LearningRate_IsReadEachStep) {
  Rules rules(R"({"name": "sgd"})", {{"w", {1}, {{1}, {1}}}});
  rules.step(0.5f);
  rules.step(0.25f);
  EXPECT_EQ(rules.values("w"), (std::vector<float>{0.25f}));
}

}  // namespace
}  // namespace fleet
