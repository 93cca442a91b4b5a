#include <algorithm>
#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// The formula of lib/engine/optim/lars.cc in double.
struct Reference {
  double momentum = 0.9, coeff = 0.001, decay = 0.0005, coupled = 0, epsilon = 0;

  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
  }
  std::vector<double> run(const Trained& trained, double rate) const {
    std::vector<double> p(trained.start.begin(), trained.start.end()), v(p.size());
    for (const std::vector<float>& step : trained.gradients) {
      std::vector<double> g(step.begin(), step.end());
      for (size_t i = 0; i < p.size(); ++i) g[i] += coupled * p[i];
      double local = rate;
      if (decay > 0 && norm(p) > 0 && norm(g) > 0) {
        local = rate * coeff * norm(p) / (norm(g) + decay * norm(p) + epsilon);
      }
      for (size_t i = 0; i < p.size(); ++i) {
        v[i] = momentum * v[i] + local * (g[i] + decay * p[i]);
        p[i] -= v[i];
      }
    }
    return p;
  }
};

// NumPy: l = lr * c * |p| / (|g| + wd * |p| + 1e-9); v = .9 v + l * (g + wd * p); p -= v
TEST(Lars, TorchRecipe_GivesNumPysValues) {
  Rules rules(R"({"name": "lars", "lars_coeff": 0.02, "weight_decay": 0.01, "epsilon": 1e-9})",
              {torch_recipe()});
  expect_all_near(rules.run(), {0.9915203221418293, -1.9980975975824804, 0.48964553537762134});
}

// Several parameters, of which each has a norm of its own; many elements, so that several threads
// share them.
TEST(Lars, ManyElements_MatchesNaiveFormula) {
  Trained large{"large", std::vector<float>(100003), {}}, small{"small", {3, -4}, {}};
  for (size_t i = 0; i < large.start.size(); ++i) {
    large.start[i] = static_cast<float>(i % 17) / 8 - 1;
  }
  for (int step = 0; step < 4; ++step) {
    large.gradients.emplace_back(large.start.size());
    for (size_t i = 0; i < large.start.size(); ++i) {
      large.gradients[step][i] = static_cast<float>((i * 7 + step) % 29) / 16 - 1;
    }
    small.gradients.push_back({0.5f * static_cast<float>(step), 1});
  }
  Rules rules(
      R"({"name": "lars", "lars_coeff": 0.05, "weight_decay": 0.1, "coupled_weight_decay": 0.02})",
      {large, small});
  const Reference reference{.coeff = 0.05, .decay = 0.1, .coupled = 0.02};
  expect_all_near(rules.run(), reference.run(large, 0.1));
  expect_all_near(rules.values("small"), reference.run(small, 0.1));
}

// As in another layout, or on a parameter server: the sums' order differs, the rate does not.
TEST(Lars, OtherOrderOfElements_HasTheSameBits) {
  for (const char* rule : {R"({"name": "lars", "weight_decay": 0.1})", R"({"name": "lamb"})"}) {
    Trained one{"one", std::vector<float>(20011), {std::vector<float>(20011)}};
    for (size_t i = 0; i < one.start.size(); ++i) {
      one.start[i] = std::sin(static_cast<float>(i) * 0.37f);
      one.gradients[0][i] = std::exp(2 * std::sin(static_cast<float>(i) * 0.11f));
    }
    Trained other = one;
    other.name = "other";
    std::ranges::reverse(other.start);
    std::ranges::reverse(other.gradients[0]);
    Rules rules(rule, {one, other});
    std::vector<float> reversed = rules.run();
    std::ranges::reverse(reversed);
    EXPECT_EQ(rules.values("other"), reversed) << rule;
  }
}

TEST(Lars, ZeroParameterOrGradient_TakesThePlainRate) {
  Rules rules(R"({"name": "lars", "weight_decay": 0.1})",
              {{"zero", {0, 0}, {{0.5f, -1}, {0.5f, -1}}}});
  // The first step is lr * g; in the second the parameter has a length.
  rules.step(0.1f);
  expect_all_near(rules.values("zero"), {-0.05, 0.1});
}

TEST(Lars, Excluded_DoesNotDecayAndKeepsThePlainRate) {
  Rules rules(R"({"name": "lars", "exclude_from_weight_decay": ["bias"]})",
              {{"bias", {1, -1}, {{0.5f, 1}}}});
  expect_all_near(rules.run(), {0.95, -1.1});
}

}  // namespace
}  // namespace fleet
