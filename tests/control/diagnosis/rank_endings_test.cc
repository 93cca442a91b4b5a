#include "diagnosis/rank_endings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "diagnosis/stacks.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Of a job in which `running` ranks still run.
Stacks job_with(int running) {
  Stacks all;
  for (int i = 0; i < running; ++i) all.add_clusters()->add_ranks()->set_rank(100 + i);
  return all;
}

RankEnding& add_ended(int rank, int ago_ms, Stacks* all) {
  RankEnding& ending = *all->add_endings();
  ending.set_rank(rank);
  ending.set_ended(true);
  ending.set_ago_ms(ago_ms);
  return ending;
}

void add_failing(int rank, const std::string& error, Stacks* all) {
  RankEnding& ending = *all->add_endings();
  ending.set_rank(rank);
  ending.set_error(error);
}

TEST(RankEndings, FirstOfFewThatHaveEnded_IsTheOneToLookAt) {
  Stacks all = job_with(3);
  add_ended(4, 2000, &all);
  add_ended(5, 7000, &all);
  ASSERT_NE(find_early_end(all), nullptr);
  EXPECT_EQ(find_early_end(all)->rank(), 5);
}

TEST(RankEndings, MostHaveEnded_TheRestIsToLookAt) {
  Stacks all = job_with(1);
  add_ended(4, 2000, &all);
  add_ended(5, 7000, &all);
  EXPECT_EQ(find_early_end(all), nullptr);
}

TEST(RankEndings, ServerThatHasEnded_IsNoTrainer) {
  Stacks all = job_with(3);
  add_ended(0, 2000, &all).set_server(true);
  EXPECT_EQ(find_early_end(all), nullptr);
  EXPECT_THAT(endings_text(all), HasSubstr("server 0"));
}

TEST(RankEndings, RankThatRunsWithAnException_IsFailing) {
  Stacks all = job_with(3);
  add_ended(4, 2000, &all);
  EXPECT_EQ(find_failing(all), nullptr);
  add_failing(2, "KeyError: 'lr'", &all);
  ASSERT_NE(find_failing(all), nullptr);
  EXPECT_EQ(find_failing(all)->rank(), 2);
}

TEST(RankEndings, Text_HasALineForRanksWithTheSameEnd) {
  Stacks all = job_with(3);
  add_ended(5, 1000, &all);
  add_ended(4, 4030, &all);
  add_failing(2, "KeyError: 'lr'", &all);
  const std::string text = endings_text(all);
  EXPECT_THAT(text, AllOf(HasSubstr("ranks 4-5 have ended with 0, 4.03 s before"),
                          HasSubstr("rank 2 "), HasSubstr("KeyError: 'lr'")));
  EXPECT_EQ(endings_text(job_with(2)), "");
}

TEST(RankEndings, Text_IsLimited) {
  Stacks all;
  for (int rank = 0; rank < 100; ++rank) add_failing(rank, "E: " + std::to_string(rank), &all);
  const std::string text = endings_text(all);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
}

TEST(RankEndings, Json_HasAllFields) {
  Stacks all;
  RankEnding& ending = add_ended(4, 4030, &all);
  ending.set_node_rank(1);
  ending.set_log_path("log/workerlog.0");
  add_failing(2, "KeyError: 'lr'", &all);
  const auto json = nlohmann::json::parse(endings_json(all.endings()).dump());
  EXPECT_EQ(json, nlohmann::json::parse(R"([
      {"role": "trainer", "rank": 4, "local_rank": 0, "node_rank": 1, "ended": true, "ago": 4.03,
       "error": "", "log": "log/workerlog.0"},
      {"role": "trainer", "rank": 2, "local_rank": 0, "node_rank": 0, "ended": false, "ago": null,
       "error": "KeyError: 'lr'", "log": ""}])"));
}

}  // namespace
}  // namespace fleet
