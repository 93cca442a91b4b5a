#include <cmath>

#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

float scale_of(float square, std::optional<float> loss_scaling, double rho) {
  Program program;
  const SectionId section = program.add_section("sam", {});
  const VarId in = program.feed("square", DType::kFloat32, {1});
  const VarId factor = loss_scaling ? program.feed("scaling", DType::kFloat32, {1}) : kNoVar;
  const VarId out = program.emit(section, "sam_scale", {in, factor}, {{"rho", rho}})[0];
  Executor executor(plan_program(program, {out}, op_plan_options()), op_device(), nullptr);
  executor.feed(in, std::span(&square, 1));
  if (loss_scaling) executor.feed(factor, std::span(&*loss_scaling, 1));
  executor.run({});
  return executor.values<float>(out)[0];
}

TEST(SamScale, Norm_IsTheSquaresRoot) {
  EXPECT_NEAR(scale_of(16, {}, 0.05), -0.0125, 1e-9);
  EXPECT_NEAR(scale_of(16, 1024.0f, 0.5), -0.125, 1e-8);  // these gradients are scaled, too
}

// No gradient, no step: the factor stays finite.
TEST(SamScale, Zero_IsBoundedByTheEpsilon) {
  EXPECT_NEAR(scale_of(0, {}, 0.05) / -0.05e12, 1, 1e-5);
}

TEST(SamScale, NotFinite_Shows) { EXPECT_TRUE(std::isnan(scale_of(NAN, {}, 0.05))); }

}  // namespace
}  // namespace fleet
