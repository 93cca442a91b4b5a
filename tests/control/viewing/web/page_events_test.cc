#include "viewing/web/page_events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fleet {
namespace {

wire::LiveHistory history_of(int points) {
  wire::LiveHistory history;
  history.set_interval_ms(2000);
  history.set_now_ms(2000 * points);
  for (int i = 0; i < points; ++i) {
    wire::LiveHistory::Point* point = history.add_points();
    point->set_at_ms(2000 * i);
    point->set_step(i);
    point->set_loss(0.125);
  }
  return history;
}

JobInfo ended_job(Verdict::Kind kind) {
  JobInfo job;
  job.set_number(7);
  job.set_phase(JobInfo::ENDED);
  job.set_code(5);
  job.mutable_record()->set_job_id("night");
  wire::JobVerdict* verdict = job.mutable_record()->mutable_verdict();
  verdict->mutable_verdict()->set_kind(kind);
  verdict->set_text("it failed");
  return job;
}

TEST(HistoryEvent, Points_HaveTheJobsAndTheRanksValues) {
  wire::LiveHistory history = history_of(2);
  wire::LiveHistory::Point* point = history.mutable_points(1);
  point->set_accuracy(0.5);
  point->set_samples_per_second(80);
  point->set_gpu(90);
  wire::LiveHistory::Ranks* ranks = point->mutable_ranks();
  ranks->add_own_ms(50);
  ranks->add_own_ms(std::nanf(""));
  ranks->set_input(std::string("\x0a\xff", 2));
  ranks->set_peers(std::string("\x19\xff", 2));
  ranks->set_gpu(std::string("\x5a\xff", 2));
  ranks->add_cpu(1.5);
  const nlohmann::json json = nlohmann::json::parse(history_event(history, 1004));
  EXPECT_EQ(json["interval"], 2);
  ASSERT_EQ(json["points"].size(), 2u);
  const nlohmann::json& first = json["points"][0];
  EXPECT_EQ(first["time"], 1000);
  EXPECT_EQ(first["loss"], 0.125);
  for (const char* unknown :
       {"accuracy", "evaluation_accuracy", "rate", "step_ms", "gpu", "gpu_memory", "ranks"}) {
    EXPECT_TRUE(first.at(unknown).is_null()) << unknown;
  }
  const nlohmann::json& last = json["points"][1];
  EXPECT_EQ(last["time"], 1002);
  EXPECT_EQ(last["step"], 1);
  EXPECT_EQ(last["accuracy"], 0.5);
  EXPECT_EQ(last["rate"], 80);
  EXPECT_EQ(last["gpu"], 90);
  EXPECT_EQ(last["ranks"], nlohmann::json::parse("[[50,10,25,150,90],[null,null,null,null,null]]"));
}

TEST(HistoryEvent, ListsOfDifferentLengths_AreReadAsFarAsTheyGo) {
  wire::LiveHistory history = history_of(1);
  history.mutable_points(0)->set_loss(INFINITY);
  history.mutable_points(0)->mutable_ranks()->add_own_ms(1);
  const nlohmann::json point = nlohmann::json::parse(history_event(history, 0))["points"][0];
  EXPECT_TRUE(point["loss"].is_null());
  EXPECT_EQ(point["ranks"], nlohmann::json::parse("[[1,null,null,null,null]]"));
}

TEST(OutcomeEvent, FailedRank_IsNamed) {
  JobInfo job = ended_job(Verdict::RANK_FAILED);
  job.mutable_record()->mutable_verdict()->mutable_verdict()->mutable_exit()->set_rank(3);
  const nlohmann::json json = nlohmann::json::parse(outcome_event(outcome_of(job)));
  EXPECT_EQ(json["text"], "it failed");
  EXPECT_EQ(json["failed"], nlohmann::json::parse(R"({"role": "trainer", "rank": 3})"));
  EXPECT_TRUE(json["lost_node"].is_null());
}

TEST(OutcomeEvent, LostNode_IsNamed) {
  JobInfo job = ended_job(Verdict::NODE_LOST);
  job.mutable_record()->mutable_verdict()->mutable_verdict()->set_node_rank(1);
  const nlohmann::json json = nlohmann::json::parse(outcome_event(outcome_of(job)));
  EXPECT_EQ(json["lost_node"], 1);
  EXPECT_TRUE(json["failed"].is_null());
}

TEST(OutcomeEvent, Success_NamesNobody) {
  const nlohmann::json json = nlohmann::json::parse(outcome_event({.state = "succeeded"}));
  EXPECT_EQ(json["state"], "succeeded");
  EXPECT_TRUE(json["failed"].is_null() && json["lost_node"].is_null());
}

TEST(JobsEvent, Jobs_HaveTheirProgressAndFailure) {
  JobInfo failed = ended_job(Verdict::RANK_FAILED), running;
  failed.mutable_record()->mutable_verdict()->mutable_verdict()->mutable_exit()->set_rank(3);
  running.set_number(8);
  running.set_phase(JobInfo::RUNNING);
  running.mutable_record()->mutable_progress()->set_step(50);
  running.mutable_record()->mutable_progress()->set_target(100);
  running.mutable_record()->mutable_progress()->set_seconds_left(60);
  const nlohmann::json json = nlohmann::json::parse(jobs_event("here", {failed, running}));
  EXPECT_EQ(json["host"], "here");
  EXPECT_EQ(json["jobs"][0]["failed"]["rank"], 3);
  EXPECT_EQ(json["jobs"][0]["ended"], true);
  EXPECT_EQ(json["jobs"][1]["step"], 50);
  EXPECT_EQ(json["jobs"][1]["seconds_left"], 60);
  EXPECT_FALSE(json["jobs"][1].contains("failed"));
}

TEST(CurvesEvent, LongHistory_IsThinnedFromItsStartToItsEnd) {
  const wire::LiveHistory longer = history_of(400), one = history_of(1), none;
  const nlohmann::json jobs =
      nlohmann::json::parse(curves_event({{1, &longer}, {2, &one}, {3, &none}}))["jobs"];
  ASSERT_EQ(jobs.size(), 3u);
  const nlohmann::json& points = jobs[0]["points"];
  EXPECT_EQ(points.size(), static_cast<size_t>(kListPoints));
  EXPECT_EQ(points.front(), nlohmann::json::parse("[0, 0.125, null, null, null]"));
  EXPECT_EQ(points.back()[0], 2 * 399);
  EXPECT_EQ(jobs[1]["number"], 2);
  EXPECT_EQ(jobs[1]["points"].size(), 1u);
  EXPECT_TRUE(jobs[2]["points"].empty());
}

}  // namespace
}  // namespace fleet
