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

TEST(Muon, ZeroGradient_OnlyDecays) {
  Rules rules(R"({"name": "muon", "weight_decay": 0.5})",
              {{.name = "w", .start = {2, -4, 1, 1}, .gradients = {{0, 0, 0, 0}}}}, {2, 2});
  expect_all_near(rules.run(), {1.9, -3.8, 0.95, 0.95});
}

}  // namespace
}  // namespace fleet
