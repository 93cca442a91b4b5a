#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// Values of torch.optim.Adafactor: scripts/make_golden_optimizers.py.
TEST(Adafactor, Matrix_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "adafactor"})", {twenty_steps(12)}, {3, 4});
  expect_all_near(rules.run(), {-0.8133388487, 0.2094575533, -0.6054795852, 0.5447555236,
                                -0.6655582095, 0.7592584887, -0.5250128802, 1.103273756,
                                -0.5154965133, 1.454217279, -0.4857716, -1.404358959});
  EXPECT_EQ(rules.values("w.row").size(), 3u);
  EXPECT_EQ(rules.values("w.column").size(), 4u);
}

TEST(Adafactor, Vector_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "adafactor"})", {twenty_steps(7)});
  expect_all_near(rules.run(), {-1.055651332, -0.03741279374, -0.8390827679, 0.343645102,
                                -0.669893042, 0.6970857283, -0.5476890863});
}

TEST(Adafactor, FourDimensionsWithOtherSettings_GiveTheValuesOfPyTorch) {
  Rules rules(R"({"name": "adafactor", "beta2_decay": -0.6, "epsilon1": 1e-4, "epsilon2": 0.5,
                  "clip_threshold": 1.25, "weight_decay": 0.05})",
              {twenty_steps(24)}, {2, 2, 2, 3});
  expect_all_near(
      rules.run(0.5f),
      {-0.3558382856, -0.3425950259, -0.5001018061, 0.174423676,   0.281316058,    0.2648700204,
       -0.4350050145, 0.2129343441,  -0.5827312203, 0.8644703305,  -0.04488843273, -0.808515434,
       -0.6642029436, -0.1938813546, -0.4752861046, -0.0609601531, 0.487158142,    -0.1386352406,
       0.02947671961, -0.4316895021, 0.2428220207,  -0.2218094353, 1.115207684,    -0.3717562625},
      1e-5);
}

// One step: v = g^2, u = sign(g).
TEST(Adafactor, WithoutScaleAndRelativeStep_StepsByTheRate) {
  const std::string settings =
      R"({"name": "adafactor", "scale_parameter": false, "relative_step": )";
  const Trained trained{.name = "w", .start = {1, -1}, .gradients = {{0.5f, -3}}};
  Rules plain(settings + "false}", {trained}), relative(settings + "true}", {trained});
  expect_all_near(plain.run(4), {-3, 3});
  expect_all_near(relative.run(4), {0, 0});
}

// Squares of one row and one column times each other: u = sign(g).
TEST(Adafactor, ManyElements_MatchTheFormula) {
  const int64_t rows = 160, columns = 130;
  Trained trained{.name = "w", .start = std::vector<float>(rows * columns), .gradients = {{}}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    const auto row = static_cast<float>(i / columns % 3 + 1);
    const auto column = static_cast<float>(i % columns % 5 - 5);
    trained.gradients[0].push_back(row * column / 8);
  }
  Rules rules(R"({"name": "adafactor", "scale_parameter": false})", {trained}, {rows, columns});
  expect_all_near(rules.run(), std::vector<double>(rows * columns, 0.1), 1e-5);
}

TEST(Adafactor, OtherLayout_GivesTheSameValues) {
  const Shape shape{3, 4, 3, 2};
  Trained trained{.name = "w", .start = wave(72, 1, 4), .gradients = {}};
  for (int step = 0; step < 3; ++step) trained.gradients.push_back(wave(72, step, 5));
  Rules plain(R"({"name": "adafactor"})", {trained}, shape);
  Rules last(R"({"name": "adafactor"})", {trained}, shape, Layout::channels_last(shape));
  const std::vector<float> want = plain.run();
  expect_all_near(last.run(), std::vector<double>(want.begin(), want.end()), 1e-6);
  EXPECT_EQ(plain.values("w.row"), last.values("w.row"));
}

}  // namespace
}  // namespace fleet
