#include "optim/ema.h"
#include "tests/engine/optim/rules.h"

namespace fleet {
namespace {

// The rates of a warm-up over 5 steps.
std::vector<float> run_with_warmup(Rules& rules) {
  for (int step = 0; step < 20; ++step) {
    rules.step(static_cast<float>(0.1 * std::min(1.0, (step + 1) / 5.0)));
  }
  return rules.values("w");
}

// Values of the package schedulefree: scripts/make_golden_optimizers.py.
TEST(ScheduleFree, Adamw_GivesTheValuesOfItsAuthors) {
  Rules rules(R"({"name": "schedule_free_adamw"})", {twenty_steps(7)});
  expect_all_near(rules.run(),
                  {-1.024732634, -0.02570126085, -0.8688273191, 0.382406359, -0.7361532843,
                   0.7690944736, -0.6290393017},
                  1e-5);
}

TEST(ScheduleFree, AdamwWithWarmup_GivesTheValuesOfItsAuthors) {
  Rules rules(R"({"name": "schedule_free_adamw", "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3,
                  "weight_decay": 0.1})",
              {twenty_steps(7)});
  expect_all_near(run_with_warmup(rules),
                  {-1.077588718, 0.1268858153, -0.9527951397, 0.5106974698, -0.8473650479,
                   0.874301332, -0.756841081},
                  1e-5);
}

TEST(ScheduleFree, SgdWithWarmup_GivesTheValuesOfItsAuthors) {
  Rules rules(R"({"name": "schedule_free_sgd", "momentum": 0.8, "weight_decay": 0.1})",
              {twenty_steps(7)});
  expect_all_near(run_with_warmup(rules),
                  {-0.9969499119, 0.3354366867, -0.8483609662, 0.6332407501, -0.6885456984,
                   0.9514294044, -0.5176798557},
                  1e-5);
}

TEST(ScheduleFree, RateOfZero_ChangesNothing) {
  Rules rules(R"({"name": "schedule_free_adamw"})", {torch_recipe()});
  rules.step(0);
  EXPECT_EQ(rules.values("w"), torch_recipe().start);
}

// A program of one parameter that an evaluation reads as the average.
TEST(ScheduleFree, Average_IsTheWeightsOfTheirEvaluation) {
  const Trained trained = twenty_steps(7);
  Program program;
  const SectionId forward = program.add_section("forward", {}),
                  evaluate =
                      program.add_section("evaluate", {.training = false, .evaluation = true}),
                  section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  const VarId w = program.parameter("w", {7}, {});
  const VarId gradient = program.feed("w@GRAD", DType::kFloat32, {7});
  program.set_gradient(w, gradient);
  program.append(evaluate, "scale", {w}, {program.temporary("seen")});
  append_updates(program, section, {w}, rate,
                 optimizer_settings(R"({"name": "schedule_free_adamw", "beta1": 0.8, "beta2": 0.95,
                                        "epsilon": 1e-3, "weight_decay": 0.1})"));
  append_ema(program, forward, evaluate, section, kNoVar, {.rate = program.find(kAverageRate)});
  Executor executor(plan_program(program, {}, op_plan_options()), op_device(), nullptr);
  executor.initialize(1);
  executor.write(w, trained.start);
  for (int step = 0; step < 20; ++step) {
    const auto value = static_cast<float>(0.1 * std::min(1.0, (step + 1) / 5.0));
    executor.feed(rate, std::span(&value, 1));
    executor.feed(gradient, trained.gradients[step]);
    executor.run({.step = step});
  }
  expect_all_near(executor.values<float>(executor.program().find("ema.w")),
                  {-1.115101159, 0.1738976861, -0.9802097542, 0.5374845515, -0.8599855618,
                   0.8888371702, -0.7508920636},
                  1e-5);
}

}  // namespace
}  // namespace fleet
