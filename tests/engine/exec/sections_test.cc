// The sections of a run: flags, syncs, and temporaries that several exclusive sections write.
#include <gtest/gtest.h>

#include <algorithm>

#include "exec/executor.h"
#include "tensor/host.h"

namespace fleet {
namespace {

// Adds `amount` to a state [1] in each run in which `when` holds; returns the state.
VarId counter(Program& program, const std::string& name, const Predicate& when, double amount = 1) {
  const VarId count = program.state(name, {1}, {});
  const SectionId section = program.add_section(name, when);
  program.append(section, "scale", {count}, {count}, {{"bias", amount}});
  return count;
}

TEST(Sections, Flags_ChooseAmongSections) {
  Program program;
  const FlagId begun = program.add_flag("begun"), now = program.add_flag("now");
  const VarId before = counter(program, "before", {.flag = begun, .flag_value = false});
  const VarId after = counter(program, "after", {.flag = begun});
  const VarId average = counter(program, "average", {.from_step = 1, .flag = now});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.initialize(1);
  const auto counts = [&] {
    std::vector<float> all;
    for (const VarId id : {before, after, average}) all.push_back(executor.values<float>(id)[0]);
    return all;
  };
  const uint64_t begun_bit = uint64_t{1} << begun, now_bit = uint64_t{1} << now;
  executor.run({.step = 0, .flags = now_bit});
  EXPECT_EQ(counts(), (std::vector<float>{1, 0, 0}));
  executor.run({.step = 1, .flags = now_bit});
  EXPECT_EQ(counts(), (std::vector<float>{2, 0, 1}));
  executor.run({.step = 2, .flags = begun_bit | now_bit});
  EXPECT_EQ(counts(), (std::vector<float>{2, 1, 2}));
  executor.run({.step = 3, .flags = begun_bit});
  EXPECT_EQ(counts(), (std::vector<float>{2, 2, 2}));
  executor.run({.step = 4});
  EXPECT_EQ(counts(), (std::vector<float>{3, 2, 2}));
}

TEST(Sections, Sync_RunsTheSyncSectionsOnly) {
  Program program;
  const VarId training = counter(program, "training", {.training = true, .evaluation = true});
  const VarId sync = counter(program, "sync", {.training = false, .sync = true});
  const VarId both = counter(program, "both", {.sync = true, .every = 2});
  const VarId refresh = counter(program, "refresh", {.training = false, .refresh = true});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.initialize(1);
  const auto counts = [&] {
    std::vector<float> all;
    for (const VarId id : {training, sync, both, refresh}) {
      all.push_back(executor.values<float>(id)[0]);
    }
    return all;
  };
  executor.run({.step = 0, .sync = true});  // the host wrote before: a refresh goes first
  EXPECT_EQ(counts(), (std::vector<float>{0, 1, 1, 1}));
  executor.run({.step = 0});
  EXPECT_EQ(counts(), (std::vector<float>{1, 1, 1, 1}));
  executor.run({.step = 1});
  EXPECT_EQ(counts(), (std::vector<float>{2, 1, 2, 1}));
  executor.run({.step = 2, .sync = true});
  EXPECT_EQ(counts(), (std::vector<float>{2, 2, 3, 1}));
}

TEST(Sections, Sync_IsNoRunOfTheProfile) {
  Program program;
  counter(program, "training", {});
  counter(program, "sync", {.training = false, .sync = true});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.initialize(1);
  executor.set_profiling(true);
  executor.run({.step = 0});
  for (int i = 0; i < 3; ++i) executor.run({.step = 1, .sync = true});
  // Calls a run: one of the step's operation, three of the sync's, in one run.
  EXPECT_NE(executor.profile().find("     4 calls"), std::string::npos) << executor.profile();
}

TEST(Sections, ExclusiveWriters_SetOneTemporaryForItsReader) {
  Program program;
  const VarId x = program.feed("x", DType::kFloat32, {1});
  const VarId y = program.temporary("y");
  const std::vector<int64_t> edges = {0, 2, 3, kForever};  // as DGC's ramp
  for (int i = 0; i < 3; ++i) {
    const SectionId section = program.add_section(
        "range" + std::to_string(i), {.from_step = edges[i], .until_step = edges[i + 1]});
    program.append(section, "scale", {x}, {y}, {{"scale", 10.0 * (i + 1)}});
  }
  const SectionId after = program.add_section("after", {});
  const VarId z = program.emit(after, "scale", {y}, {{"bias", 1.0}})[0];
  HostDevice device;
  Executor executor(plan_program(program, {z}), device, nullptr);
  std::vector<float> seen;
  for (int64_t step = 0; step < 5; ++step) {
    const auto fed = static_cast<float>(step + 1);
    executor.feed(x, std::span(&fed, 1));
    executor.run({.step = step});
    seen.push_back(executor.values<float>(z)[0]);
  }
  EXPECT_EQ(seen, (std::vector<float>{11, 21, 61, 121, 151}));
}

// A write of evaluation must not be moved behind a section that reads it in training and
// evaluation.
TEST(Sections, WriterOfEvaluationOrSync_StaysBeforeItsReader) {
  Program program;
  const VarId x = program.feed("x", DType::kFloat32, {1});
  const VarId y = program.temporary("y");
  const SectionId training = program.add_section("training", {});
  const SectionId evaluation =
      program.add_section("evaluation", {.training = false, .evaluation = true});
  const SectionId sync = program.add_section("sync", {.training = false, .sync = true});
  const SectionId all = program.add_section("all", {.evaluation = true, .sync = true});
  program.append(training, "scale", {x}, {y}, {{"scale", 1.0}});
  const VarId first = program.emit(evaluation, "scale", {x}, {{"scale", 5.0}})[0];
  program.append(evaluation, "scale", {first}, {y}, {{"scale", 2.0}});
  program.append(sync, "scale", {x}, {y}, {{"scale", 100.0}});
  const VarId z = program.emit(all, "scale", {y}, {{"bias", 0.5}})[0];
  // Behind that reader evaluation and sync change what it read: the next run sees it.
  const VarId alone = program.emit(evaluation, "scale", {z})[0];
  HostDevice device;
  Executor executor(plan_program(program, {z, alone}), device, nullptr);
  const auto run = [&](float value, const StepInfo& info) {
    executor.feed(x, std::span(&value, 1));
    executor.run(info);
    return executor.values<float>(z)[0];
  };
  EXPECT_EQ(run(1, {.step = 0}), 1.5f);
  EXPECT_EQ(run(2, {.evaluate = true}), 20.5f);
  EXPECT_EQ(executor.values<float>(alone)[0], 20.5f);
  EXPECT_EQ(run(3, {.sync = true}), 300.5f);
  EXPECT_EQ(run(4, {.step = 1}), 4.5f);
}

// Two sources whose memory is ordered differently: the second writer ends in the first's layout.
class ExclusiveLayouts : public ::testing::TestWithParam<bool> {};

TEST_P(ExclusiveLayouts, SecondWriter_EndsInTheFirstsLayout) {
  const bool plain_first = GetParam();
  const Shape shape = {2, 3, 4, 5};
  Program program;
  const VarId last = program.state("last", shape, {}), plain = program.state("plain", shape, {});
  const VarId y = program.temporary("y");
  const SectionId even = program.add_section("even", {.every = 2, .between = true});
  const SectionId odd = program.add_section("odd", {.every = 2});
  const SectionId after = program.add_section("after", {});
  program.append(even, "relu", {plain_first ? plain : last}, {y});
  program.append(odd, "relu", {plain_first ? last : plain}, {y});
  const VarId z = program.emit(after, "relu", {y})[0];
  PlanOptions options;
  options.initial_layouts = {{last, Layout::channels_last(shape)}, {plain, Layout::plain(shape)}};
  const Plan plan = plan_program(program, {z}, options);
  const Layout& ends = plan.vars[y].layout;
  EXPECT_EQ(ends, plain_first ? Layout::plain(shape) : Layout::channels_last(shape));
  int writers = 0;
  for (const PlannedOp& planned : plan.ops) {
    for (size_t i = 0; i < planned.op.outputs.size(); ++i) {
      if (planned.op.outputs[i] != y) continue;
      EXPECT_EQ(planned.output_layouts[i], ends) << planned.op.type();
      ++writers;
    }
  }
  EXPECT_EQ(writers, 2);

  HostDevice device;
  Executor executor(plan, device, nullptr);
  std::vector<float> a(shape.elements()), b(shape.elements());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i + 1);
    b[i] = static_cast<float>(1000 + 2 * i);
  }
  executor.write(last, a);
  executor.write(plain, b);
  for (int64_t step = 0; step < 4; ++step) {
    executor.run({.step = step});
    const bool from_plain = (step % 2 == 0) == plain_first;
    EXPECT_EQ(executor.values<float>(z), from_plain ? b : a) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ExclusiveLayouts, ::testing::Bool());

}  // namespace
}  // namespace fleet
