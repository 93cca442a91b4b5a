#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// NumPy, t = 1, 2, 3: m = .9 m + .1 g; s = .999 s + .001 g^2;
// r = m / (1 - .9^t) / (sqrt(s / (1 - .999^t)) + 1e-6) + .01 p; p -= lr * |p| / |r| * r
TEST(Lamb, TorchRecipe_GivesNumPysValues) {
  Rules rules(R"({"name": "lamb"})", {torch_recipe()});
  expect_all_near(rules.run(), {0.5879578489598828, -2.057358156469567, 0.22604452483729992});
}

TEST(Lamb, ZeroParameter_TakesThePlainRate) {
  Rules rules(R"({"name": "lamb"})", {{"zero", {0, 0}, {{0.5f, -1}}}});
  expect_all_near(rules.run(), {-0.1, 0.1});  // Adam's first step
}

TEST(Lamb, ExcludedSuffix_DoesNotDecay) {
  const Trained bias{"fc.bias", {3, -4}, {{0.5f, -1}, {0.25f, 1}}};
  Rules excluded(R"({"name": "lamb", "weight_decay": 0.5, "exclude_suffixes": ["bias"]})", {bias});
  Rules without(R"({"name": "lamb", "weight_decay": 0})", {bias});
  Rules elsewhere(R"({"name": "lamb", "weight_decay": 0.5, "exclude_suffixes": ["fc"]})", {bias});
  const std::vector<float> free = without.run();
  EXPECT_EQ(excluded.run(), free);
  EXPECT_NE(elsewhere.run(), free);  // a prefix is not a suffix
}

// Each parameter moves by lr times its own length, however large its gradients are.
TEST(Lamb, Step_IsAsLongAsTheParameter) {
  Rules rules(R"({"name": "lamb", "weight_decay": 0})",
              {{"a", {3, -4}, {{100, 50}}}, {"b", {0.3f, -0.4f}, {{0.01f, 0.02f}}}});
  rules.run();
  const auto moved = [&](const std::string& name, float x, float y) {
    const std::vector<float> now = rules.values(name);
    return std::hypot(now[0] - x, now[1] - y);
  };
  EXPECT_NEAR(moved("a", 3, -4), 0.5, 1e-5);
  EXPECT_NEAR(moved("b", 0.3f, -0.4f), 0.05, 1e-5);
}

}  // namespace
}  // namespace fleet
