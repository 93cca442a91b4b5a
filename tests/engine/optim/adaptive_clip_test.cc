#include "optim/parameter_groups.h"
#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// Three rows of four: the second is almost zero, and the third has small gradients.
Trained three_rows(const std::string& name = "w") {
  Trained rows{.name = name, .start = wave(12, 1, 4), .gradients = {}};
  for (int i = 4; i < 8; ++i) rows.start[i] *= 1e-4f;
  for (int t = 0; t < 20; ++t) {
    std::vector<float> gradient;
    for (int row = 0; row < 3; ++row) {
      for (float g : wave(4, t + 3 * row, row == 0 ? 2 : row == 1 ? 3 : 800)) gradient.push_back(g);
    }
    rows.gradients.push_back(gradient);
  }
  return rows;
}

constexpr const char* kAdaptive =
    R"({"name": "momentum", "clip": "adaptive", "clip_factor": 0.02})";

// timm.utils.agc.adaptive_clip_grad([w, b], .02) in double before each step of SGD(lr=.1,
// momentum=.9)
TEST(AdaptiveClip, TwentySteps_GiveTheValuesOfTimm) {
  Rules rules(kAdaptive, {three_rows()}, {3, 4});
  expect_all_near(rules.run(),
                  {-1.1879569463, 0.47012759028, -0.96555586010, 0.71522415240, -7.5269056634e-05,
                   1.0230429282e-04, -6.2150045176e-05, 1.3286697054e-04, -0.25914783862,
                   1.5168347195, -0.010108054757, -1.4890281101});
}

TEST(AdaptiveClip, Vector_IsOneUnit) {
  Trained bias{.name = "b", .start = {0.5, -0.25, 0.125}, .gradients = {}};
  for (int t = 0; t < 20; ++t) bias.gradients.push_back(wave(3, t, t % 2 ? 1000 : 5));
  Rules rules(kAdaptive, {bias});
  expect_all_near(rules.run(), {0.5191157775, -0.2602085808, 0.1369431386});
}

TEST(AdaptiveClip, BlockedLayout_GivesTheSameValues) {
  const Shape shape{20, 6, 1, 1};
  Trained trained{.name = "w", .start = wave(120, 3, 16), .gradients = {}};
  for (int t = 0; t < 3; ++t) trained.gradients.push_back(wave(120, t, 2));
  Rules plain(kAdaptive, {trained}, shape);
  Rules blocked(kAdaptive, {trained}, shape,
                Layout::blocked({32, 6, 1, 1}, {96, 16, 16, 16}, {{0, 16}}));
  EXPECT_EQ(plain.run(), blocked.run());
}

TEST(AdaptiveClip, Excluded_IsNotClipped) {
  Rules rules(R"({"name": "sgd", "clip": "adaptive", "clip_exclude": ["head.*"]})",
              {{"head.weight", {1}, {{3}}}, {"w", {1}, {{3}}}});
  rules.run(1);
  expect_all_near(rules.values("head.weight"), {-2});
  expect_all_near(rules.values("w"), {0.99});
}

TEST(AdaptiveClip, KeysWithoutIt_AreRefused) {
  for (const char* key : {R"("clip_factor": 0.1)", R"("clip_exclude": ["w"])"}) {
    EXPECT_THROW(Rules(R"({"name": "sgd", )" + std::string(key) + "}", {{"w", {1}, {{1}}}}), Error)
        << key;
  }
}

TEST(AdaptiveClip, PatternOfNoParameter_IsRefused) {
  Program program;
  program.parameter("fc.weight", {2}, {});
  const Settings settings =
      optimizer_settings(R"({"name": "sgd", "clip": "adaptive", "clip_exclude": ["fd.*"]})");
  EXPECT_THROW(check_parameter_patterns(program, settings), Error);
}

// The rows of a sparse embedding have no weights beside them.
TEST(AdaptiveClip, SparseRows_AreRefused) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  const VarId weight = program.parameter("weight", {9, 2}, {});
  const VarId ids = program.feed("ids", DType::kInt64, {4});
  const VarId dy = program.feed("dy", DType::kFloat32, {4, 2});
  const std::vector<VarId> made =
      program.emit(section, "embedding_grad_rows", {ids, dy}, {{"rows", int64_t{9}}});
  program.set_gradient(weight, made.back());
  EXPECT_THROW(append_updates(program, section, {weight}, rate, optimizer_settings(kAdaptive)),
               Error);
}

}  // namespace
}  // namespace fleet
