// Trainers that are started again in their places, while the job goes on.
#include "rendezvous/types.h"
#include "tests/control/rendezvous/restarted_job.h"

namespace fleet {
namespace {

JobSpec replaceable(int replacements, int restarts = 0) {
  JobSpec spec = job_of({"a", "b"});
  spec.restarts.max_restarts = restarts;
  spec.restarts.max_replacements = replacements;
  return spec;
}

RankExit killed(int rank) {
  RankExit exit;
  exit.set_rank(rank);
  exit.set_local_rank(1);
  exit.set_signal(9);
  exit.set_replaceable(true);
  return exit;
}

void send(RestartedJob& job, SessionId session, const RankExit& exit) {
  job.send(session, &wire::NodeMessage::mutable_exit, exit);
}

TEST(JobReplacement, LostTrainer_IsReplacedAndAllNodesHearOfIt) {
  RestartedJob job(replaceable(2));
  job.join_all(2);
  send(job, 2, killed(3));
  for (const SessionId session : {1, 2}) {
    const auto commands = job.events_for<wire::ReplaceCommand>(session);
    ASSERT_EQ(commands.size(), 1u);
    EXPECT_EQ(commands[0].exit().rank(), 3);
    EXPECT_EQ(commands[0].exit().node_rank(), 1);
    EXPECT_EQ(commands[0].ordinal(), 1);
    EXPECT_EQ(commands[0].of(), 2);
  }
  job.after(std::chrono::seconds(5));
  EXPECT_EQ(job.state.phase(), JobPhase::kRunning);
  for (const SessionId session : {1, 2}) job.finish(session);
  EXPECT_TRUE(succeeded(*job.state.verdict()));
}

TEST(JobReplacement, UsedUp_LastFailureIsTheVerdict) {
  RestartedJob job(replaceable(1));
  job.join_all(2);
  send(job, 2, killed(3));
  send(job, 2, killed(3));
  job.after(std::chrono::seconds(5));
  EXPECT_EQ(exit_code_for(job.verdict(1)), 128 + 9);
  EXPECT_EQ(job.events_for<wire::ReplaceCommand>(1).size(), 1u);
}

TEST(JobReplacement, SecondLossOfARank_HasTheNextOrdinal) {
  RestartedJob job(replaceable(3));
  job.join_all(2);
  for (const int rank : {3, 2, 3}) send(job, 2, killed(rank));
  const auto commands = job.events_for<wire::ReplaceCommand>(1);
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[1].ordinal(), 1);
  EXPECT_EQ(commands[2].ordinal(), 2);
  EXPECT_EQ(commands[2].used(), 3);
}

void report_samples(RestartedJob& job, int rank, int64_t repeated, int64_t lost) {
  StepReport report;
  RankSteps& steps = *report.add_ranks();
  steps.set_rank(rank);
  steps.set_repeated_samples(repeated);
  steps.set_lost_samples(lost);
  job.send(2, &wire::NodeMessage::mutable_steps, report);
}

TEST(JobReplacement, Verdict_HasEachReplacementAndWhatItsProcessReports) {
  RestartedJob job(replaceable(3));
  job.join_all(2);
  RankExit exit = killed(3);
  exit.set_tail("the last lines");
  send(job, 2, exit);
  report_samples(job, 3, 64, 32);
  job.after(std::chrono::seconds(5));
  send(job, 2, killed(3));
  for (const SessionId session : {1, 2}) job.finish(session);
  const auto& replaced = job.state.verdict()->replacements();
  ASSERT_EQ(replaced.size(), 2);
  EXPECT_EQ(replaced[0].exit().rank(), 3);
  EXPECT_EQ(replaced[0].ordinal(), 1);
  EXPECT_EQ(replaced[0].before_ms(), 5000);
  EXPECT_EQ(replaced[0].repeated_samples(), 64);
  EXPECT_EQ(replaced[0].lost_samples(), 32);
  EXPECT_FALSE(replaced[0].message().empty());
  EXPECT_TRUE(replaced[0].exit().tail().empty());
  EXPECT_EQ(replaced[1].ordinal(), 2);
  EXPECT_FALSE(replaced[1].has_repeated_samples());
}

TEST(JobReplacement, Verdict_HasReplacementsOfAnEarlierGeneration) {
  RestartedJob job(replaceable(3, 3));
  job.join_all(2);
  send(job, 2, killed(3));
  job.fail(1);
  job.restart();
  report_samples(job, 3, 64, 32);  // not of the process of generation 1
  for (const SessionId session : {1, 2}) job.finish(session);
  const auto& replaced = job.state.verdict()->replacements();
  ASSERT_EQ(replaced.size(), 1);
  EXPECT_EQ(replaced[0].generation(), 1);
  EXPECT_FALSE(replaced[0].has_repeated_samples());
}

TEST(JobReplacement, WrongInput_EndsTheJob) {
  JobSpec spec = replaceable(3);
  spec.restarts.final_exit = 2;
  RestartedJob job(spec);
  job.join_all(2);
  RankExit exit = killed(3);
  exit.set_signal(0);
  exit.set_code(2);
  send(job, 2, exit);
  job.after(std::chrono::seconds(5));
  EXPECT_EQ(exit_code_for(job.verdict(1)), 2);
  EXPECT_TRUE(job.events_for<wire::ReplaceCommand>(1).empty());
}

// The server's loss may have ended the trainer too.
TEST(JobReplacement, TrainerThatFailsAfterAServer_IsNotReplaced) {
  RestartedJob job(replaceable(3));
  job.join_all(2);
  RankExit server;
  server.set_server(true);
  server.set_signal(11);
  send(job, 1, server);
  RankExit trainer = killed(3);
  trainer.set_signal(0);
  trainer.set_code(1);
  send(job, 2, trainer);
  job.after(std::chrono::seconds(5));
  EXPECT_TRUE(job.verdict(1).exit().server());
  EXPECT_TRUE(job.events_for<wire::ReplaceCommand>(1).empty());
}

TEST(JobReplacement, TrainerThatMissesAPeer_IsNotReplaced) {
  RestartedJob job(replaceable(3));
  job.join_all(2);
  RankExit exit = killed(3);
  exit.set_signal(0);
  exit.set_code(kExitPeerLost);
  send(job, 2, exit);
  EXPECT_TRUE(job.events_for<wire::ReplaceCommand>(1).empty());
}

}  // namespace
}  // namespace fleet
