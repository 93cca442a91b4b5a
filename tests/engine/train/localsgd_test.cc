// Steps of localsgd and adaptive_localsgd on several ranks, against the algorithms in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/train/dot_net.h"

namespace fleet {
namespace {

using testing::ElementsAreArray;

constexpr int64_t kElements = 6;
constexpr double kMomentum = 0.75, kDecay = 0.0625;
constexpr char kOptimizer[] = R"({"name": "momentum", "momentum": 0.75, "weight_decay": 0.0625})";
const Floats kStart = {4, 3, 5, 2, 6, 4};

// All positive, so that the loss is.
Floats fed(int rank, int64_t step) {
  Floats x(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    x[i] = 1 + static_cast<float>((7 * rank + 5 * step + 3 * i) % 11) / 4;
  }
  return x;
}

float rate_of(int64_t step) { return step < 8 ? 0.125f : 0.03125f; }

using Doubles = std::vector<double>;

// Reference computation: local steps of the ranks, and averaging.
struct Reference {
  explicit Reference(int ranks)
      : parameters(ranks, Doubles(kStart.begin(), kStart.end())),
        velocities(ranks, Doubles(kElements)) {}

  // One step of all ranks; the mean of their losses.
  double step(int64_t step) {
    double losses = 0;
    for (size_t rank = 0; rank < parameters.size(); ++rank) {
      const Floats x = fed(static_cast<int>(rank), step);
      Doubles &p = parameters[rank], &v = velocities[rank];
      for (int64_t i = 0; i < kElements; ++i) {
        losses += p[i] * x[i] / kElements;
        v[i] = kMomentum * v[i] + x[i] / kElements + kDecay * p[i];
        p[i] -= rate_of(step) * v[i];
      }
    }
    return losses / static_cast<double>(parameters.size());
  }
  void average() {
    Doubles mean(kElements);
    for (const Doubles& p : parameters) {
      for (int64_t i = 0; i < kElements; ++i) {
        mean[i] += p[i] / static_cast<double>(parameters.size());
      }
    }
    for (Doubles& p : parameters) p = mean;
  }
  std::vector<Doubles> parameters, velocities;
};

DotNet net_of(const std::string& strategy) {
  return {
      .strategy = strategy, .optimizer = kOptimizer, .start = kStart, .x = fed, .rate = rate_of};
}

void expect_as_reference(const std::vector<Floats>& weights, const Reference& reference) {
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    for (int64_t i = 0; i < kElements; ++i) {
      EXPECT_NEAR(weights[rank][i], reference.parameters[rank][i], 1e-5) << rank << " " << i;
    }
  }
}

// Averages after steps 1, 2, 5, 8 (from 1); at the end ranks are apart.
TEST(LocalSgdSteps, OnThreeRanks_FollowTheAlgorithm) {
  Reference reference(3);
  for (int64_t step = 0; step < 10; ++step) {
    reference.step(step);
    const int64_t number = step + 1;
    if (number <= 2 || (number - 2) % 3 == 0) reference.average();
  }
  const auto weights =
      train(net_of("localsgd: true localsgd_configs { k_steps: 3 begin_step: 2 }"), 3, 10);
  expect_as_reference(weights, reference);
  EXPECT_NE(weights[0], weights[1]);
}

// Wang and Joshi's rule in Paddle's form: the steps, from 1, after which ranks averaged, and k.
struct Chosen {
  std::vector<int64_t> averaged, k;
};
Chosen run_adaptive(Reference& reference, int64_t steps, double init, int64_t begin) {
  Chosen chosen;
  double first_loss = 0;
  int64_t k = static_cast<int64_t>(init), last = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const double loss = reference.step(step);
    const int64_t number = step + 1;
    if (number == 1) first_loss = loss;
    if (number > begin && number - last != k) continue;
    reference.average();
    last = number;
    chosen.averaged.push_back(number);
    if (number <= begin) continue;
    const double ratio = rate_of(0) * loss / (rate_of(step) * first_loss);
    k = std::min(16, std::max(1, static_cast<int>(std::ceil(std::sqrt(ratio * init)))));
    chosen.k.push_back(k);
  }
  return chosen;
}

TEST(AdaptiveLocalSgdSteps, OnThreeRanks_FollowTheAlgorithm) {
  constexpr int64_t kSteps = 40;
  Reference reference(3);
  const Chosen expected = run_adaptive(reference, kSteps, 3, 2);
  std::vector<Chosen> chosen(3);
  std::vector<float> before(3);
  DotNet net =
      net_of("adaptive_localsgd: true adaptive_localsgd_configs { init_k_steps: 3 begin_step: 2 }");
  net.inspect = [&](int rank, int64_t step, Executor& executor) {
    const auto steps =
        executor.values<float>(executor.program().find("optimizer.adaptive_localsgd_steps"));
    if (steps[3] > 0) return;  // not averaged in this step
    chosen[rank].averaged.push_back(step + 1);
    if (step + 1 > 2) chosen[rank].k.push_back(static_cast<int64_t>(steps[2]));
  };
  const auto weights = train(net, 3, kSteps);
  for (const Chosen& one : chosen) {
    EXPECT_THAT(one.averaged, ElementsAreArray(expected.averaged));
    EXPECT_THAT(one.k, ElementsAreArray(expected.k));
  }
  // The loss falls, and with the smaller rate of later steps ranks train longer between averages.
  EXPECT_GT(*std::max_element(expected.k.begin(), expected.k.end()),
            *std::min_element(expected.k.begin(), expected.k.end()));
  expect_as_reference(weights, reference);
}

// The loss becomes negative: the root is not a number.
TEST(AdaptiveLocalSgdSteps, LossBelowZero_AveragesInEachStep) {
  DotNet net = net_of("adaptive_localsgd: true adaptive_localsgd_configs { init_k_steps: 2 }");
  net.x = [](int, int64_t step) { return Floats(kElements, step == 0 ? 1.0f : -1.0f); };
  net.inspect = [](int, int64_t step, Executor& executor) {
    if (step < 3) return;
    const auto steps =
        executor.values<float>(executor.program().find("optimizer.adaptive_localsgd_steps"));
    EXPECT_EQ(steps[2], 1);
    EXPECT_EQ(steps[3], 0);
  };
  train(net, 2, 6);
}

}  // namespace
}  // namespace fleet
