#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "exec/executor.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

using Floats = std::vector<float>;

float drawn(uint32_t& state) {
  state = state * 1664525 + 1013904223;
  return static_cast<float>(state >> 8) / (1 << 23) - 1;
}

Floats random_floats(int64_t count, uint32_t seed) {
  Floats values(count);
  for (float& value : values) value = drawn(seed);
  return values;
}

// One parameter's update: its gradient, the elements to send, and the values before it.
struct DgcCase {
  Floats gradient;
  int64_t sent = 1;
  Floats parameter = {}, velocity = {}, residual = {};  // empty: zeros
  double decay = 0;
  std::optional<float> scale = {};
  Shape shape = {};                   // empty: a vector
  std::optional<Layout> layout = {};  // of memory; all values here are in plain order
};

struct Rule {
  double momentum = 0.9, factor = 1;
  bool nesterov = false;
};

struct Outcome {
  std::vector<int32_t> places;
  Floats values, velocity, residual;
};

// One step of one operation over all cases.
std::vector<Outcome> select(std::vector<DgcCase> cases, const Rule& rule = {}) {
  Program program;
  const SectionId section = program.add_section("always", {});
  PlanOptions options = op_plan_options();
  const VarId encoded = program.temporary("encoded");
  std::vector<VarId> inputs, outputs = {encoded};
  std::vector<int64_t> counts;
  std::vector<double> decays;
  std::vector<std::pair<VarId, Floats>> written;
  for (size_t i = 0; i < cases.size(); ++i) {
    DgcCase& one = cases[i];
    const auto count = static_cast<int64_t>(one.gradient.size());
    const Shape shape = one.shape.rank() > 0 ? one.shape : Shape{count};
    for (Floats* values : {&one.parameter, &one.gradient, &one.velocity, &one.residual}) {
      values->resize(count);
      const std::string name = std::to_string(i) + "." + std::to_string(inputs.size());
      const VarId id = program.state(name, shape, Init());
      if (one.layout) options.initial_layouts[id] = *one.layout;
      written.emplace_back(id, *values);
      inputs.push_back(id);
    }
    outputs.insert(outputs.end(), inputs.end() - 2, inputs.end());
    inputs.push_back(kNoVar);
    if (one.scale) {
      inputs.back() = program.state("scale" + std::to_string(i), {1}, Init());
      written.emplace_back(inputs.back(), Floats{*one.scale});
    }
    counts.push_back(one.sent);
    decays.push_back(one.decay);
  }
  program.append(section, "dgc_select", inputs, outputs,
                 {{"counts", counts},
                  {"weight_decays", decays},
                  {"momentum", rule.momentum},
                  {"use_nesterov", rule.nesterov},
                  {"gradient_factor", rule.factor}});
  Executor executor(plan_program(std::move(program), {encoded}, options), op_device(), nullptr);
  executor.initialize(1);
  for (const auto& [id, values] : written) executor.write(id, values);
  executor.run({});
  const std::vector<int32_t> sent = executor.values<int32_t>(encoded);
  std::vector<Outcome> outcomes;
  auto at = sent.begin();
  for (size_t i = 0; i < cases.size(); ++i) {
    Outcome outcome{.places = {at, at + counts[i]},
                    .values = {},
                    .velocity = executor.values<float>(outputs[1 + 2 * i]),
                    .residual = executor.values<float>(outputs[2 + 2 * i])};
    for (auto value = at + counts[i]; value < at + 2 * counts[i]; ++value) {
      outcome.values.push_back(std::bit_cast<float>(*value));
    }
    at += 2 * counts[i];
    outcomes.push_back(outcome);
  }
  return outcomes;
}

// The places of the k largest of |x|, by sorting all: of equal ones the first.
std::vector<int32_t> largest(const Floats& x, int64_t k) {
  const auto size = [&](int32_t i) { return std::bit_cast<uint32_t>(x[i]) & 0x7fffffff; };
  std::vector<int32_t> places(x.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(),
                   [&](int32_t a, int32_t b) { return size(a) > size(b); });
  places.resize(k);
  std::sort(places.begin(), places.end());
  return places;
}

// With nothing accumulated so far and no decay, v is the gradient.
void expect_largest_sent(const Floats& gradient, int64_t k) {
  const Outcome outcome = select({{.gradient = gradient, .sent = k}})[0];
  const std::vector<int32_t> expected = largest(gradient, k);
  ASSERT_EQ(outcome.places, expected) << "of " << gradient.size();
  Floats left = gradient;
  for (int64_t i = 0; i < k; ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(outcome.values[i]),
              std::bit_cast<uint32_t>(gradient[expected[i]]));
    left[expected[i]] = 0;
  }
  EXPECT_EQ(outcome.residual, left);
  EXPECT_EQ(outcome.velocity, left);
}

TEST(DgcSelect, Random_SendsExactlyTheLargest) {
  for (const int64_t count : {1, 5, 64, 1000, 16384, 100003}) {
    const Floats gradient = random_floats(count, static_cast<uint32_t>(count));
    for (const double part : {0.0001, 0.001, 0.02, 0.25, 0.9, 1.0}) {
      expect_largest_sent(gradient, std::max<int64_t>(1, static_cast<int64_t>(count * part)));
    }
  }
}

// Values over all exponents, so that each digit of their bits decides somewhere.
TEST(DgcSelect, ManyMagnitudes_SendsExactlyTheLargest) {
  uint32_t seed = 5;
  Floats gradient(70000);
  for (float& value : gradient) {
    value = std::ldexp(drawn(seed), static_cast<int>(60 * drawn(seed)));
  }
  for (const int64_t k : {1, 70, 700, 30000, 69999}) expect_largest_sent(gradient, k);
}

TEST(DgcSelect, EqualValues_SendsTheFirst) {
  Floats gradient = random_floats(40000, 3);
  for (size_t i = 0; i < gradient.size(); ++i) {
    if (i % 3 == 1) gradient[i] = i % 2 ? 0.5f : -0.5f;
    if (i % 1000 == 7) gradient[i] = 2;
  }
  for (const int64_t k : {3, 40, 41, 5000, 20000}) expect_largest_sent(gradient, k);
  expect_largest_sent(Floats(40000, -1), 17);
  expect_largest_sent(Floats(40000, -1), 39000);
}

TEST(DgcSelect, Zeros_SendsTheFirst) {
  expect_largest_sent(Floats(20000), 20);
  Floats few(20000);
  few[19999] = 1e-40f;  // not normal, and still the largest
  few[7] = -1e-44f;
  expect_largest_sent(few, 2);
  expect_largest_sent(few, 20);
}

// All large ones side by side: most tiles hold none of them.
TEST(DgcSelect, LargeOnesInOnePlace_SendsThem) {
  Floats gradient = random_floats(60000, 9);
  for (int i = 30000; i < 30600; ++i) gradient[i] *= 100;
  for (const int64_t k : {60, 599, 601}) expect_largest_sent(gradient, k);
}

TEST(DgcSelect, NotANumber_IsSentBeforeAllElse) {
  Floats gradient = random_floats(20000, 4);
  gradient[11] = std::numeric_limits<float>::infinity();
  gradient[15000] = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(select({{.gradient = gradient, .sent = 1}})[0].places, std::vector<int32_t>{15000});
  EXPECT_EQ(select({{.gradient = gradient, .sent = 2}})[0].places,
            (std::vector<int32_t>{11, 15000}));
}

// The rule in double: with momentum, decay, scale and factor, one parameter larger than the other.
void expect_rule(bool nesterov) {
  const Rule rule{.momentum = 0.75, .factor = 4, .nesterov = nesterov};
  std::vector<DgcCase> cases;
  for (const int64_t count : {50000, 130}) {
    const auto seed = static_cast<uint32_t>(count);
    cases.push_back({.gradient = random_floats(count, seed + 1),
                     .sent = count / 100,
                     .parameter = random_floats(count, seed + 2),
                     .velocity = random_floats(count, seed + 3),
                     .residual = random_floats(count, seed + 4),
                     .decay = count > 1000 ? 0.125 : 0,
                     .scale = count > 1000 ? std::optional(0.5f) : std::nullopt});
  }
  const std::vector<Outcome> outcomes = select(cases, rule);
  for (size_t c = 0; c < cases.size(); ++c) {
    const DgcCase& one = cases[c];
    Floats sums;
    std::vector<double> velocities, residuals;
    for (size_t i = 0; i < one.gradient.size(); ++i) {
      const double d = one.gradient[i] * double(one.scale.value_or(1)) * rule.factor +
                       one.decay * one.parameter[i];
      const double m = rule.momentum, before = one.velocity[i];
      const double u = nesterov ? m * (before + d) : m * before + d;
      velocities.push_back(u);
      residuals.push_back(one.residual[i] + u + (nesterov ? d : 0));
      sums.push_back(static_cast<float>(residuals.back()));
    }
    const std::vector<int32_t> places = largest(sums, one.sent);
    ASSERT_EQ(outcomes[c].places, places);
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_NEAR(outcomes[c].values[i], residuals[places[i]], 1e-5);
      velocities[places[i]] = residuals[places[i]] = 0;
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_NEAR(outcomes[c].velocity[i], velocities[i], 1e-5) << i;
      ASSERT_NEAR(outcomes[c].residual[i], residuals[i], 1e-5) << i;
    }
  }
}

TEST(DgcSelect, Momentum_FollowsTheRule) { expect_rule(false); }
TEST(DgcSelect, NesterovsMomentum_FollowsTheRule) { expect_rule(true); }

// Places are those of memory, in whatever layout the parameter is.
TEST(DgcSelect, BlockedLayout_SendsPlacesInMemory) {
  const Shape shape = {2, 3, 4, 4};
  const Layout layout = Layout::channels_last(shape);
  const Floats gradient = random_floats(96, 8);
  const Outcome outcome =
      select({{.gradient = gradient, .sent = 5, .shape = shape, .layout = layout}})[0];
  Floats memory(96);
  relayout(shape, sizeof(float), Layout::plain(shape), gradient.data(), layout, memory.data());
  EXPECT_EQ(outcome.places, largest(memory, 5));
}

TEST(DgcApply, WhatRanksSent_IsAveragedAndDescended) {
  const std::vector<int64_t> counts = {3, 1};
  const std::vector<int32_t> places[2][2] = {{{0, 2, 4}, {1}}, {{1, 2, 4}, {0}}};
  const Floats values[2][2] = {{{1, -2, 3}, {8}}, {{5, 6, -7}, {16}}};
  std::vector<int32_t> gathered;
  for (int rank : {0, 1}) {
    for (int i : {0, 1}) {
      gathered.insert(gathered.end(), places[rank][i].begin(), places[rank][i].end());
      for (const float value : values[rank][i]) {
        gathered.push_back(std::bit_cast<int32_t>(value));
      }
    }
  }
  Program program;
  const SectionId section = program.add_section("always", {});
  const VarId rate = program.feed("rate", DType::kFloat32, {1});
  const VarId sent =
      program.feed("gathered", DType::kInt32, {static_cast<int64_t>(gathered.size())});
  const VarId p = program.parameter("p", {5}, {}), q = program.parameter("q", {2}, {});
  program.append(section, "dgc_apply", {rate, sent, p, q}, {p, q}, {{"counts", counts}});
  Executor executor(plan_program(std::move(program), {}, op_plan_options()), op_device(), nullptr);
  executor.initialize(1);
  const Floats start = {1, 1, 1, 1, 1}, zeros = {0, 0};
  executor.write(p, start);
  executor.write(q, zeros);
  const float quarter = 0.25f;
  executor.feed(rate, std::span(&quarter, 1));
  executor.feed(sent, gathered);
  executor.run({});
  EXPECT_EQ(executor.values<float>(p), (Floats{1 - 0.125f, 1 - 0.625f, 1 - 0.5f, 1, 1 + 0.5f}));
  EXPECT_EQ(executor.values<float>(q), (Floats{-2, -1}));
}

}  // namespace
}  // namespace fleet
