#include "node/reported_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kMs = 1'000'000;

ReportedStep parse(std::string_view text) {
  std::string why;
  const auto report = parse_reported_step(text, &why);
  EXPECT_TRUE(report) << why << ": " << text;
  return report.value_or(ReportedStep());
}
std::string reason(std::string_view text) {
  std::string why;
  EXPECT_FALSE(parse_reported_step(text, &why)) << text;
  return why;
}

TEST(ParseReportedStep, AllKeys_AreRead) {
  const ReportedStep report = parse(
      R"({"fleetrun": {"step": 100, "steps": 1e3, "epoch": 1.5, "loss": -0.25, "samples": 3200,)"
      R"("batch_time": 0.5, "data_time": 0.125, "wait_time": 0, "lr": 1e-3, "acc1": 1}})");
  EXPECT_EQ(report.step, 100);
  EXPECT_EQ(report.steps, 1000);
  EXPECT_EQ(report.epoch, 1.5);
  EXPECT_EQ(report.loss, -0.25);
  EXPECT_EQ(report.samples, 3200);
  EXPECT_EQ(report.batch_time, 0.5);
  EXPECT_EQ(report.data_time, 0.125);
  EXPECT_EQ(report.wait_time, 0);
  EXPECT_THAT(report.others, ElementsAre(Pair("lr", 1e-3), Pair("acc1", 1)));
}

TEST(ParseReportedStep, StepAlone_IsAReportWithOrWithoutTheOuterObject) {
  for (const char* text : {R"({"step":7})", R"({"fleetrun":{"step":7.0}})"}) {
    const ReportedStep report = parse(text);
    EXPECT_EQ(report.step, 7);
    EXPECT_FALSE(report.loss);
    EXPECT_THAT(report.others, IsEmpty());
  }
}

TEST(ReportedSteps, Accuracy_IsTakenAsAShareOnly) {
  ReportedSteps steps;
  steps.add(parse(R"({"step":1,"accuracy":0.5,"evaluation_accuracy":0.25})"), kMs);
  EXPECT_EQ(steps.progress()->accuracy, 0.5);
  EXPECT_EQ(steps.progress()->evaluation_accuracy, 0.25);
  steps.add(parse(R"({"step":2,"accuracy":76.5})"), 2 * kMs);  // percent
  EXPECT_EQ(steps.progress()->accuracy, 0.5);
}

TEST(ParseReportedStep, Null_IsNoValue) {
  const ReportedStep report =
      parse(R"({"step":1,"steps":null,"epoch":null,"samples":null,"loss":null,"acc":null})");
  EXPECT_EQ(report.steps, 0);
  EXPECT_FALSE(report.epoch);
  EXPECT_FALSE(report.samples);
  ASSERT_TRUE(report.loss);
  EXPECT_TRUE(std::isnan(*report.loss));
  ASSERT_EQ(report.others.size(), 1u);
  EXPECT_TRUE(std::isnan(report.others[0].second));
}

TEST(ParseReportedStep, OtherTexts_AreRemarks) {
  EXPECT_THAT(
      parse(R"({"step":1,"phase":"warm-up","ok":true,"lrs":[1,2],"time":5,"event":6})").others,
      IsEmpty());
}

TEST(ParseReportedStep, WrongReports_AreRefusedWithTheirKey) {
  for (const char* text :
       {"", "{", "step 1", "[1]", "1", R"({"step":1)", R"({"fleetrun":{"step":1}} x)",
        R"({"step":1,"loss":NaN})", R"({"step":1,"loss":Infinity})", R"({"step":1,"loss":1e999})",
        R"({"step":01})", R"({"fleetrun":7})", R"({"loss":0.1})", R"({"step":null})",
        "{\"step\":1,\"\xff\":2}", R"({"step":1,"a":[[[[1]]]]})"}) {
    EXPECT_NE(reason(text), "") << text;
  }
  for (const char* key : {"step", "steps", "epoch", "samples", "data_time", "wait_time", "loss"}) {
    for (const char* value : {"\"1\"", "true", "[1]", "{}"}) {
      const std::string member = "\"" + std::string(key) + "\":" + value;
      EXPECT_THAT(reason("{\"step\":1," + member + "}"), HasSubstr(key)) << member;
    }
  }
  for (const char* member :
       {R"("step":-1)", R"("step":1.5)", R"("step":1e16)", R"("steps":-1)", R"("epoch":-1)",
        R"("samples":1e300)", R"("data_time":1e7)", R"("loss":1e305)", R"("acc":-1e305)"}) {
    EXPECT_THAT(reason("{\"step\":1," + std::string(member) + "}"), HasSubstr("\"")) << member;
  }
}

TEST(ParseReportedStep, ManyOrLongNames_AreRefused) {
  std::string many = R"({"step":1)";
  for (int i = 0; i < 100; ++i) many += ",\"v" + std::to_string(i) + "\":1";
  EXPECT_NE(reason(many + "}"), "");
  EXPECT_NE(reason("{\"step\":1,\"" + std::string(101, 'x') + "\":1}"), "");
  EXPECT_NE(reason(std::string(10'000, '[')), "");
}

struct ReportedStepsTest : ::testing::Test {
  void add(std::string_view text, int64_t at_ms) { steps.add(parse(text), at_ms * kMs); }
  const RankProgress& now() const { return *steps.progress(); }
  ReportedSteps steps;
};

TEST_F(ReportedStepsTest, Rates_AreMeasuredBetweenReports) {
  EXPECT_FALSE(steps.progress());
  add(R"({"step":100,"steps":1000,"samples":3200,"loss":2,"epoch":1.75})", 5000);
  EXPECT_EQ(now().step, 100);
  EXPECT_EQ(now().target, 1000);
  EXPECT_EQ(now().epoch, 1);
  EXPECT_EQ(now().loss, 2);
  EXPECT_EQ(now().first_step_at_ns, 5000 * kMs);
  const RankProgress first = now();
  add(R"({"step":110,"samples":3520})", 7000);
  EXPECT_EQ(now().steps - first.steps, 10);
  EXPECT_EQ(now().totals.time - first.totals.time, 2000 * kMs);
  EXPECT_EQ(now().totals.samples - first.totals.samples, 320);
  EXPECT_EQ(now().step_at_ns, 7000 * kMs);
  EXPECT_EQ(now().losses, 1);
  EXPECT_EQ(now().target, 1000);
  EXPECT_EQ(now().totals.exposed, -1);  // unknown
}

TEST_F(ReportedStepsTest, TimesOfTheProgram_CountForEachStep) {
  add(R"({"step":0})", 0);
  add(R"({"step":10,"batch_time":0.25,"data_time":0.05,"wait_time":0.1})", 4000);
  EXPECT_EQ(now().totals.time, 2500 * kMs);  // the rest was no step, such as an evaluation
  EXPECT_EQ(now().totals.input, 500 * kMs);
  EXPECT_EQ(now().totals.waited, 1000 * kMs);
  EXPECT_EQ(now().totals.exposed, 1000 * kMs);
  EXPECT_EQ(now().totals.exchange, 1000 * kMs);
  add(R"({"step":20,"batch_time":0.25,"wait_time":0.02})", 8000);
  EXPECT_EQ(now().totals.exposed, 1200 * kMs);
  EXPECT_EQ(now().totals.exchange, 1200 * kMs);
  add(R"({"step":30,"batch_time":0.25,"wait_time":0.1})", 12000);
  EXPECT_EQ(now().totals.exposed, 2200 * kMs);
  EXPECT_EQ(now().totals.exchange, 1400 * kMs);  // every step waits 20 ms
}

TEST_F(ReportedStepsTest, WrongTimes_NeverExceedTheTimeThatPassed) {
  add(R"({"step":0})", 0);
  add(R"({"step":1000000,"batch_time":1e6,"data_time":1e6,"wait_time":1e6})", 1000);
  EXPECT_EQ(now().totals.time, 1000 * kMs);
  EXPECT_EQ(now().totals.input, 1000 * kMs);
  EXPECT_EQ(now().totals.exposed, 1000 * kMs);
}

TEST_F(ReportedStepsTest, SameStepAgain_UpdatesValuesOnly) {
  add(R"({"step":10,"loss":3})", 1000);
  const RankProgress before = now();
  add(R"({"step":10,"loss":2,"eval_loss":5})", 9000);
  EXPECT_EQ(now().steps, before.steps);
  EXPECT_EQ(now().step_at_ns, before.step_at_ns);
  EXPECT_EQ(now().loss, 2);
}

TEST_F(ReportedStepsTest, LowerStep_BeginsAnewWithoutLosingTheSums) {
  add(R"({"step":100,"samples":1000})", 1000);
  add(R"({"step":110,"samples":1100})", 2000);
  const RankProgress before = now();
  add(R"({"step":50,"samples":500})", 60'000);
  EXPECT_EQ(now().step, 50);
  EXPECT_EQ(now().steps, before.steps);
  EXPECT_EQ(now().totals, before.totals);
  add(R"({"step":60,"samples":600})", 61'000);
  EXPECT_EQ(now().steps - before.steps, 10);
  EXPECT_EQ(now().totals.time - before.totals.time, 1000 * kMs);
  EXPECT_EQ(now().totals.samples - before.totals.samples, 100);
}

TEST_F(ReportedStepsTest, NullLoss_LeavesTheLastOne) {
  add(R"({"step":1,"loss":3})", 1);
  add(R"({"step":2,"loss":null})", 2);
  EXPECT_EQ(now().losses, 1);
  EXPECT_EQ(now().loss, 3);
}

TEST_F(ReportedStepsTest, HugeSums_DoNotOverflow) {
  for (int i = 0; i < 20'000; ++i) {
    steps.add({.step = i % 2 == 0 ? 0 : 1'000'000'000'000'000, .samples = i % 2 == 0 ? 0 : 1e15},
              i);
  }
  EXPECT_GT(now().steps, 0);
  EXPECT_GT(now().totals.samples, 0);
}

}  // namespace
}  // namespace fleet
