// Schedules against the rates of torch.optim.lr_scheduler (PyTorch 2.15).
#include <gtest/gtest.h>

#include "optim/schedule.h"

namespace fleet {
namespace {

Schedule make(const std::string& json, int64_t steps_per_epoch, int64_t epochs) {
  const ConfigTree tree = ConfigTree::from_json(json, "test");
  return Schedule(tree.validate(schedule_schema(*tree.peek("name"))), steps_per_epoch, epochs);
}

// want: the rates from step `first` on.
void expect_rates(const Schedule& schedule, const std::vector<double>& want, int64_t first = 0) {
  for (size_t i = 0; i < want.size(); ++i) {
    const int64_t step = first + static_cast<int64_t>(i);
    EXPECT_NEAR(schedule.learning_rate(step), want[i], 1e-11 + 1e-10 * want[i]) << step;
  }
}

// StepLR(3, gamma=.5), stepped once an epoch.
TEST(ScheduleTorch, Step_GivesItsRates) {
  const Schedule epochs = make(R"({"name": "step", "base": 0.5, "gamma": 0.5, "period": 3})", 4, 9);
  const std::vector<double> want = {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125};
  for (int64_t step = 0; step < 36; ++step) {
    EXPECT_DOUBLE_EQ(epochs.learning_rate(step), want[step / 4]) << step;
  }
  expect_rates(
      make(R"({"name": "step", "base": 0.5, "gamma": 0.5, "period": 3, "unit": "step"})", 4, 9),
      want);
}

// ExponentialLR(gamma=.9), stepped once an epoch.
TEST(ScheduleTorch, Exponential_GivesItsRates) {
  const std::vector<double> want = {0.5, 0.45, 0.405, 0.3645, 0.32805};
  const Schedule held =
      make(R"({"name": "exponential", "base": 0.5, "gamma": 0.9, "per": "epoch"})", 10, 5);
  const Schedule smooth = make(R"({"name": "exponential", "base": 0.5, "gamma": 0.9})", 10, 5);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_NEAR(held.learning_rate(10 * epoch + 9), want[epoch], 1e-12);
    EXPECT_NEAR(smooth.learning_rate(10 * epoch), want[epoch], 1e-12);
  }
  EXPECT_LT(smooth.learning_rate(9), 0.46);
  expect_rates(make(R"({"name": "exponential", "base": 0.5, "gamma": 0.9, "unit": "step"})", 10, 1),
               want);
}

// transformers' get_linear_schedule_with_warmup(3 steps of 10), and without a warm-up.
TEST(ScheduleTorch, Linear_GivesTransformersRates) {
  expect_rates(make(R"({"name": "linear", "base": 0.5, "warmup_steps": 3})", 5, 2),
               {0.0, 0.166666666667, 0.333333333333, 0.5, 0.428571428571, 0.357142857143,
                0.285714285714, 0.214285714286, 0.142857142857, 0.0714285714286, 0.0, 0.0});
  expect_rates(make(R"({"name": "linear", "base": 0.5})", 1, 5), {0.5, 0.4, 0.3, 0.2, 0.1, 0, 0});
}

// CosineAnnealingWarmRestarts(2, T_mult=2, eta_min=.01), stepped with epoch + i / 4.
TEST(ScheduleTorch, CosineRestarts_GivesItsRates) {
  const std::vector<double> want = {0.5,
                                    0.481350485465,
                                    0.428241161391,
                                    0.348757440929,
                                    0.255,
                                    0.161242559071,
                                    0.0817588386093,
                                    0.0286495145347,
                                    0.5,
                                    0.495292393699,
                                    0.481350485465,
                                    0.458710055014,
                                    0.428241161391,
                                    0.39111470709,
                                    0.348757440929,
                                    0.302797128894,
                                    0.255,
                                    0.207202871106,
                                    0.161242559071,
                                    0.11888529291,
                                    0.0817588386093,
                                    0.0512899449859,
                                    0.0286495145347,
                                    0.0147076063012,
                                    0.5,
                                    0.498820258035,
                                    0.495292393699,
                                    0.489450382254};
  const std::string json =
      R"({"name": "cosine_restarts", "base": 0.5, "end": 0.01, "period": 2, "period_factor": 2)";
  expect_rates(make(json + "}", 4, 7), want);
  expect_rates(make(json + R"(, "warmup_steps": 3})", 4, 7), want, 3);
}

// CosineAnnealingWarmRestarts(3), stepped with epoch + i / 2.
TEST(ScheduleTorch, CosineRestartsOfOneLength_GivesItsRates) {
  const std::vector<double> period = {0.5, 0.466506350946, 0.375, 0.25, 0.125, 0.0334936490539};
  const Schedule schedule =
      make(R"({"name": "cosine_restarts", "base": 0.5, "period": 3})", 2, 1000);
  for (const int64_t first : {0, 6, 600}) expect_rates(schedule, period, first);
}

// OneCycleLR(.5, total_steps=20, cycle_momentum=False)
TEST(ScheduleTorch, OneCycle_GivesItsRates) {
  const std::vector<double> want = {0.02,
                                    0.06583592135,
                                    0.18583592135,
                                    0.33416407865,
                                    0.45416407865,
                                    0.5,
                                    0.493732003118,
                                    0.475242316007,
                                    0.445458088786,
                                    0.405872826975,
                                    0.358471500896,
                                    0.305631010968,
                                    0.250001,
                                    0.194370989032,
                                    0.141530499104,
                                    0.0941291730251,
                                    0.0545439112145,
                                    0.0247596839933,
                                    0.00626999688246,
                                    2e-06};
  expect_rates(make(R"({"name": "one_cycle", "base": 0.5})", 5, 4), want);
  const Schedule warmed = make(R"({"name": "one_cycle", "base": 0.5, "warmup_steps": 5})", 5, 5);
  expect_rates(warmed, want, 5);
  EXPECT_NEAR(warmed.learning_rate(4), 0.02 * 4 / 5, 1e-12) << "rises to the first rate";
  EXPECT_NEAR(warmed.learning_rate(100), 2e-6, 1e-12) << "stays beyond the end";
}

// OneCycleLR(.5, total_steps=20, cycle_momentum=False, three_phase=True, anneal_strategy='linear',
// pct_start=.4, div_factor=10, final_div_factor=100)
TEST(ScheduleTorch, OneCycleInThreePhases_GivesItsRates) {
  expect_rates(make(R"({"name": "one_cycle", "base": 0.5, "three_phase": true, "anneal": "linear",
                        "pct_start": 0.4, "div_factor": 10, "final_div_factor": 100})",
                    20, 1),
               {0.05,           0.114285714286, 0.178571428571, 0.242857142857,
                0.307142857143, 0.371428571429, 0.435714285714, 0.5,
                0.435714285714, 0.371428571429, 0.307142857143, 0.242857142857,
                0.178571428571, 0.114285714286, 0.05,           0.0401,
                0.0302,         0.0203,         0.0104,         0.0005});
  EXPECT_THROW(make(R"({"name": "one_cycle", "three_phase": true, "pct_start": 0.6})", 20, 1),
               Error);
}

// The rates after each of these test losses (or accuracies).
std::vector<double> rates_after(Schedule schedule, const std::vector<double>& values) {
  std::vector<double> rates;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto step = static_cast<int64_t>(i);
    schedule.observe(step, {.loss = values[i], .headline = values[i]});
    rates.push_back(schedule.learning_rate(step + 1));
  }
  return rates;
}

void expect_all_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

const std::vector<double> kLosses = {1,  .9, .9, .91, .92, .8999, .9, .5, .6,
                                     .6, .6, .6, .6,  .6,  .6,    .4, .4, .4};

// ReduceLROnPlateau(factor=.5, patience=2)
TEST(ScheduleTorch, Plateau_GivesItsRates) {
  expect_all_near(
      rates_after(make(R"({"name": "plateau", "base": 0.5, "factor": 0.5, "patience": 2})", 10, 2),
                  kLosses),
      {0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625,
       0.0625, 0.0625, 0.0625});
}

// ReduceLROnPlateau(factor=.1, patience=1, cooldown=2, min_lr=.004)
TEST(ScheduleTorch, PlateauWithCooldown_GivesItsRates) {
  expect_all_near(rates_after(make(R"({"name": "plateau", "base": 0.5, "patience": 1, "cooldown": 2,
                                       "min_rate": 0.004})",
                                   10, 2),
                              kLosses),
                  {0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005, 0.005,
                   0.004, 0.004, 0.004, 0.004, 0.004});
}

// ReduceLROnPlateau(factor=.5, patience=1, threshold=.05, threshold_mode='abs')
TEST(ScheduleTorch, PlateauWithAbsoluteThreshold_GivesItsRates) {
  expect_all_near(rates_after(make(R"({"name": "plateau", "base": 0.5, "factor": 0.5, "patience": 1,
                           "threshold": 0.05, "threshold_mode": "abs"})",
                                   10, 2),
                              kLosses),
                  {0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.03125,
                   0.03125, 0.015625, 0.015625, 0.015625, 0.015625, 0.0078125});
}

// ReduceLROnPlateau(factor=.5, patience=1, mode='max', threshold=.01)
TEST(ScheduleTorch, PlateauOfAccuracy_GivesItsRates) {
  expect_all_near(rates_after(make(R"({"name": "plateau", "base": 0.5, "metric": "acc1",
                                       "factor": 0.5, "patience": 1, "threshold": 0.01})",
                                   10, 2),
                              {.1, .2, .2, .2, .1, .3, .3001, .3, .3, .3}),
                  {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.0625});
}

TEST(SchedulePlateau, StateOfACheckpoint_ContinuesEqually) {
  const std::string json = R"({"name": "plateau", "factor": 0.5, "patience": 1, "cooldown": 1})";
  Schedule whole = make(json, 10, 2), resumed = make(json, 10, 2);
  for (size_t i = 0; i < kLosses.size(); ++i) {
    const auto step = static_cast<int64_t>(i);
    whole.observe(step, {.loss = kLosses[i]});
    resumed.observe(step, {.loss = kLosses[i]});
    EXPECT_EQ(resumed.observed_step(), step);
    EXPECT_EQ(resumed.learning_rate(step), whole.learning_rate(step));
    const std::vector<double> state = resumed.state();
    resumed = make(json, 10, 2);
    resumed.restore(state);
  }
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_TRUE(make(R"({"name": "constant"})", 1, 1).state().empty());
  EXPECT_THROW(whole.restore(std::vector<double>{1, 2}), Error);
}

TEST(SchedulePlateau, EvaluationOfAStep_CountsOnce) {
  Schedule schedule = make(R"({"name": "plateau", "patience": 1})", 10, 2);
  for (int i = 0; i < 9; ++i) schedule.observe(i < 5 ? 1 : 2, {.loss = 1});
  EXPECT_EQ(schedule.learning_rate(3), 0.1);
  EXPECT_NE(schedule.observe(3, {.loss = 1}), "");
  EXPECT_DOUBLE_EQ(schedule.learning_rate(3), 0.01);
}

// CosineAnnealingLR(10), and from epoch 3 on SWALR(swa_lr=.05), both stepped once an epoch.
TEST(ScheduleTorch, Ending_GivesTheRatesOfSwalr) {
  const std::string cosine = R"({"name": "cosine", "base": 0.4, "per": "epoch"})";
  const auto rates_of = [&](int64_t epochs, bool linear) {
    Schedule schedule = make(cosine, 6, 10);
    schedule.set_ending({.from = 18, .steps = 6 * epochs, .rate = 0.05, .linear = linear});
    std::vector<double> rates;
    for (int64_t step = 0; step < 60; ++step) {
      if (step % 6 == 0) rates.push_back(schedule.learning_rate(step));
      EXPECT_EQ(schedule.learning_rate(step), rates.back()) << step;
    }
    return rates;
  };
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-11) << i;
  };
  const double first = 0.4, second = 0.390211303259, third = 0.361803398875;
  expect(rates_of(4, false), {first, second, third, 0.317557050458, 0.278374227596, 0.183778525229,
                              0.0891828228625, 0.05, 0.05, 0.05});
  expect(rates_of(4, true), {first, second, third, 0.317557050458, 0.250667787844, 0.183778525229,
                             0.116889262615, 0.05, 0.05, 0.05});
  expect(rates_of(0, false), {first, second, third, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05});
}

// SWALR(swa_lr=.02, anneal_epochs=6), stepped with each batch.
TEST(ScheduleTorch, EndingBySteps_GivesTheRatesOfSwalr) {
  Schedule schedule = make(R"({"name": "constant", "base": 0.1})", 3, 9);
  schedule.set_ending({.from = 6, .steps = 6, .rate = 0.02});
  expect_rates(schedule, {0.1, 0.1, 0.0946410161514, 0.08, 0.06, 0.04, 0.0253589838486, 0.02, 0.02},
               5);
  schedule.set_ending({.from = 6, .steps = 6, .rate = 0.02, .linear = true});
  expect_rates(
      schedule,
      {0.1, 0.0866666666667, 0.0733333333333, 0.06, 0.0466666666667, 0.0333333333333, 0.02, 0.02},
      6);
}

// What evaluations changed before it is where it starts. Later ones change nothing.
TEST(SchedulePlateau, Ending_BeginsAtTheReducedRate) {
  Schedule schedule = make(R"({"name": "plateau", "base": 0.1, "patience": 0})", 2, 9);
  schedule.set_ending({.from = 4, .steps = 4, .rate = 0.03, .linear = true});
  for (int64_t step = 2; step <= 8; step += 2) schedule.observe(step, {.loss = 1});
  EXPECT_EQ(schedule.observed_step(), 8);  // a resumed job need not evaluate again
  EXPECT_NEAR(schedule.learning_rate(4), 0.01, 1e-12);
  EXPECT_NEAR(schedule.learning_rate(6), 0.02, 1e-12);
  EXPECT_NEAR(schedule.learning_rate(9), 0.03, 1e-12);
}

// LinearLR in front of each, as SequentialLR does it: the schedule begins where the warm-up ends.
TEST(ScheduleTorch, WarmUp_StandsInFrontOfEverySchedule) {
  for (const std::string& name : schedule_registry().names()) {
    if (name == "piecewise") continue;  // boundaries count from the start of the job
    const std::string json = R"({"name": ")" + name + R"(", "base": 0.4)";
    const Schedule plain = make(json + "}", 10, 3);
    const Schedule warmed = make(json + R"(, "warmup_epochs": 1, "warmup_start": 0.001})", 10, 4);
    const double first = plain.learning_rate(0);
    EXPECT_DOUBLE_EQ(warmed.learning_rate(0), 0.001) << name;
    EXPECT_NEAR(warmed.learning_rate(5), 0.001 + (first - 0.001) / 2, 1e-12) << name;
    for (int64_t step = 0; step < 30; ++step) {
      EXPECT_NEAR(warmed.learning_rate(10 + step), plain.learning_rate(step), 1e-12)
          << name << step;
    }
  }
}

}  // namespace
}  // namespace fleet
