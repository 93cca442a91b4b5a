// Steps of dgc on several ranks, against the algorithm in double: dense steps, the ramp, exact k.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/engine/train/dot_net.h"

namespace fleet {
namespace {

constexpr int64_t kElements = 20000;

float drawn(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return static_cast<float>(state >> 8) / (1 << 23) - 1;
}

Floats random_floats(uint32_t seed) {
  Floats values(kElements);
  for (float& value : values) value = drawn(seed);
  return values;
}

Floats fed(int rank, int64_t step) {
  return random_floats(static_cast<uint32_t>(1000 * rank + step + 7));
}

using Doubles = std::vector<double>;

double norm(const Doubles& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// Lin et al. (2018), algorithms 1 and 4, with Paddle's ramp; momentum before it.
struct Reference {
  int ranks;
  double momentum = 0.9, decay = 0, clip = 0;
  bool nesterov = false;
  int64_t begin = 0;
  std::function<int64_t(int64_t step)> sent;  // k

  Doubles run(const Floats& start, int64_t steps, double rate) {
    Doubles p(start.begin(), start.end());
    std::vector<Doubles> u(ranks, Doubles(p.size())), v = u;
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<Doubles> gradients;  // of each rank's own mean
      for (int rank = 0; rank < ranks; ++rank) {
        const Floats x = fed(rank, step);
        gradients.emplace_back(x.begin(), x.end());
        for (double& g : gradients.back()) g /= static_cast<double>(p.size());
      }
      step < begin ? dense(gradients, rate, p, u) : sparse(gradients, sent(step), rate, p, u, v);
    }
    return p;
  }

  // All ranks have the same velocity.
  void dense(const std::vector<Doubles>& gradients, double rate, Doubles& p,
             std::vector<Doubles>& u) const {
    Doubles mean(p.size());
    for (const Doubles& g : gradients) {
      for (size_t i = 0; i < p.size(); ++i) mean[i] += g[i] / ranks;
    }
    const double scale = clip > 0 ? std::min(1.0, clip / norm(mean)) : 1;
    for (size_t i = 0; i < p.size(); ++i) {
      const double d = scale * mean[i] + decay * p[i];
      for (Doubles& one : u) one[i] = momentum * one[i] + d;
      p[i] -= rate * (nesterov ? d + momentum * u[0][i] : u[0][i]);
    }
  }

  void sparse(const std::vector<Doubles>& gradients, int64_t k, double rate, Doubles& p,
              std::vector<Doubles>& u, std::vector<Doubles>& v) const {
    Doubles sum(p.size());
    for (int rank = 0; rank < ranks; ++rank) {
      // The bound is on a rank's part of the mean: g / ranks.
      const double scale =
          clip > 0 ? std::min(1.0, clip / std::sqrt(ranks) / (norm(gradients[rank]) / ranks)) : 1;
      for (size_t i = 0; i < p.size(); ++i) {
        const double d = scale * gradients[rank][i] + decay * p[i];
        u[rank][i] = nesterov ? momentum * (u[rank][i] + d) : momentum * u[rank][i] + d;
        v[rank][i] += u[rank][i] + (nesterov ? d : 0);
      }
      std::vector<size_t> order(p.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::abs(v[rank][a]) > std::abs(v[rank][b]);
      });
      for (int64_t i = 0; i < k; ++i) {
        sum[order[i]] += v[rank][order[i]];
        v[rank][order[i]] = u[rank][order[i]] = 0;
      }
    }
    for (size_t i = 0; i < p.size(); ++i) p[i] -= rate * sum[i] / ranks;
  }
};

// Every rank has the same bits, and they are the reference's to rounding. Had one other element
// been sent anywhere, an element would be off by about as much as a step.
void expect_as_reference(const DotNet& net, Reference reference, int64_t steps) {
  const std::vector<Floats> weights = train(net, reference.ranks, steps);
  const Doubles expected = reference.run(net.start, steps, net.rate(0));
  double largest = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    largest = std::max(largest, std::abs(weights[0][i] - expected[i]));
  }
  EXPECT_LT(largest, 3e-7);
  for (const Floats& one : weights) EXPECT_EQ(one, weights[0]);
}

DotNet net_of(const std::string& configs, const std::string& optimizer, float rate = 100) {
  return {.strategy = "dgc: true dgc_configs {" + configs + "}",
          .optimizer = optimizer,
          .start = random_floats(3),
          .x = fed,
          .rate = [rate](int64_t) { return rate; }};
}

// 20000 * (1 - sparsity) in float, rounded down: of 0.99 and 0.999 one less than in decimals.
constexpr int64_t kOf75 = 5000, kOf90 = 2000, kOf99 = 199, kOf999 = 19;

// Dense in steps 0 and 1; then 3 sparsities in 4 steps: 2 3 | 4 | 5 and on.
TEST(Dgc, RampOnTwoRanks_FollowsTheAlgorithm) {
  const auto sent = [](int64_t step) { return step < 4 ? kOf75 : step < 5 ? kOf90 : kOf99; };
  expect_as_reference(net_of("rampup_begin_step: 2 rampup_step: 4 sparsity: [0.75, 0.9, 0.99]",
                             R"({"name": "momentum", "momentum": 0.75})"),
                      {.ranks = 2, .momentum = 0.75, .begin = 2, .sent = sent}, 9);
}

TEST(Dgc, WithoutDenseStepsOnFourRanks_FollowsTheAlgorithm) {
  expect_as_reference(net_of("", R"({"name": "momentum"})"),
                      {.ranks = 4, .sent = [](int64_t) { return kOf999; }}, 8);
}

// The norm of x / 20000 is about 0.004: some ranks are clipped, each by its own norm.
TEST(Dgc, ClippedAndDecayedOnThreeRanks_FollowsTheAlgorithm) {
  expect_as_reference(
      net_of("rampup_begin_step: 1 sparsity: 0.9",
             R"({"name": "momentum", "weight_decay": 0.001, "clip": "norm", "clip_norm": 0.0018})",
             10),
      {.ranks = 3,
       .decay = 0.001,
       .clip = 0.0018,
       .begin = 1,
       .sent = [](int64_t) { return kOf90; }},
      6);
}

TEST(Dgc, Nesterov_FollowsTheAlgorithm) {
  expect_as_reference(net_of("rampup_begin_step: 0 sparsity: 0.99",
                             R"({"name": "momentum", "use_nesterov": true})"),
                      {.ranks = 2, .nesterov = true, .sent = [](int64_t) { return kOf99; }}, 6);
}

}  // namespace
}  // namespace fleet
