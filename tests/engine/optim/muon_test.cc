#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// Values of torch.optim.Muon, computed in double: scripts/make_golden_optimizers.py.
TEST(Muon, WideMatrix_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "muon"})", {twenty_steps(12)}, {3, 4});
  expect_all_near(
      rules.run(),
      {-0.1997345673, 0.4570346741, -0.5624299944, 0.6788792558, -0.2870664894, 0.7642711626,
       -0.2293133892, 1.279316006, 0.0233534212, 1.132422863, -0.301748418, -0.8050125466},
      1e-5);
}

TEST(Muon, TallMatrixWithoutNesterov_GivesTheValuesOfPyTorch) {
  Rules rules(R"({"name": "muon", "use_nesterov": false, "momentum": 0.8, "weight_decay": 0})",
              {twenty_steps(12)}, {4, 3});
  expect_all_near(
      rules.run(),
      {-0.7389563091, 0.4191541018, -0.9004044957, 0.6881329709, -0.5116093647, 0.8784547181,
       -0.3553105808, 1.020204292, -0.4585212084, 1.497551329, 0.097616694, -1.020038519},
      1e-5);
}

TEST(Muon, Convolution_IsAMatrixOfItsOutputs) {
  Rules rules(R"({"name": "muon", "ns_steps": 3, "adjust_rate": "match_rms_adamw"})",
              {twenty_steps(8)}, {2, 2, 1, 2});
  expect_all_near(rules.run(),
                  {-0.7252139554, 0.4184874371, -0.642946268, 0.5973690443, -0.5478718692,
                   0.7509227131, -0.4380616092, 1.098924386},
                  1e-5);
}

TEST(Muon, Vector_IsUpdatedByAdamw) {
  const std::vector<double> want = {-0.8212434959, 0.1443719422, -0.6446823315, 0.4207657687,
                                    -0.4829463444, 0.7137027411, -0.3393336872};
  const std::string settings =
      R"({"name": "muon", "adamw_rate": 0.5, "adamw_beta1": 0.8, "adamw_beta2": 0.95)";
  Rules rules(settings + "}", {twenty_steps(7)});
  expect_all_near(rules.run(), want, 1e-5);
  Rules listed(settings + R"(, "adamw_parameters": ["w*"]})", {twenty_steps(7)}, {1, 7});
  expect_all_near(listed.run(), want, 1e-5);
}

// The first step of a matrix, by the formula in double. Many rows or columns are computed in
// another order.
TEST(Muon, LargeMatrices_MatchTheFormula) {
  constexpr int64_t kLow = 64, kHigh = 160;
  std::vector<double> x(kLow * kHigh);
  Trained wide{.name = "w", .start = std::vector<float>(x.size()), .gradients = {{}}};
  wide.gradients[0].resize(x.size());
  Trained tall = wide;
  double squares = 0;
  for (int64_t r = 0; r < kLow; ++r) {
    for (int64_t c = 0; c < kHigh; ++c) {
      const auto value = static_cast<float>(std::sin(0.37 * r * c + 0.1 * c) / (1 + r % 7));
      wide.gradients[0][r * kHigh + c] = tall.gradients[0][c * kLow + r] = value;
      x[r * kHigh + c] = value;
      squares += x[r * kHigh + c] * x[r * kHigh + c];
    }
  }
  for (double& value : x) value /= std::sqrt(squares);
  for (int step = 0; step < 5; ++step) {
    std::vector<double> gram(kLow * kLow), factor(kLow * kLow), next(x.size());
    for (int64_t i = 0; i < kLow * kLow; ++i) {
      for (int64_t c = 0; c < kHigh; ++c) {
        gram[i] += x[i / kLow * kHigh + c] * x[i % kLow * kHigh + c];
      }
    }
    for (int64_t i = 0; i < kLow * kLow; ++i) {
      double square = 0;
      for (int64_t k = 0; k < kLow; ++k)
        square += gram[i / kLow * kLow + k] * gram[k * kLow + i % kLow];
      factor[i] = (i / kLow == i % kLow ? 3.4445 : 0) - 4.775 * gram[i] + 2.0315 * square;
    }
    for (int64_t r = 0; r < kLow; ++r) {
      for (int64_t k = 0; k < kLow; ++k) {
        for (int64_t c = 0; c < kHigh; ++c) {
          next[r * kHigh + c] += factor[r * kLow + k] * x[k * kHigh + c];
        }
      }
    }
    x = next;
  }
  Rules wide_rules(R"({"name": "muon"})", {wide}, {kLow, kHigh});
  Rules tall_rules(R"({"name": "muon"})", {tall}, {kHigh, kLow});
  const std::vector<float> of_wide = wide_rules.run(), of_tall = tall_rules.run();
  const double rate = 0.1, ratio = std::sqrt(double(kHigh) / kLow);
  for (int64_t i = 0; i < kLow * kHigh; ++i) {
    ASSERT_NEAR(of_wide[i], -rate * x[i], 2e-4 * rate) << i;
    ASSERT_NEAR(of_tall[i % kHigh * kLow + i / kHigh], -rate * ratio * x[i], 2e-4 * rate) << i;
  }
}

TEST(Muon, ZeroGradient_OnlyDecays) {
  Rules rules(R"({"name": "muon", "weight_decay": 0.5})",
              {{.name = "w", .start = {2, -4, 1, 1}, .gradients = {{0, 0, 0, 0}}}}, {2, 2});
  expect_all_near(rules.run(), {1.9, -3.8, 0.95, 0.95});
}

// A gradient of rank 1: the rounding of the zero eigenvalues of its product of rows would grow in
// each iteration.
TEST(Muon, ManyIterationsOfALargeMatrix_StayFinite) {
  constexpr int64_t kRows = 64, kColumns = 160;
  Trained trained{.name = "w", .start = std::vector<float>(kRows * kColumns), .gradients = {{}}};
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto row = static_cast<double>(i / kColumns), column = static_cast<double>(i % kColumns);
    trained.gradients[0].push_back(
        static_cast<float>(std::sin(0.37 * row + 1) * std::cos(0.11 * column)));
  }
  Rules rules(R"({"name": "muon", "ns_steps": 20, "weight_decay": 0})", {trained},
              {kRows, kColumns});
  for (const float value : rules.run()) ASSERT_LT(std::abs(value), 0.2F);
}

}  // namespace
}  // namespace fleet
