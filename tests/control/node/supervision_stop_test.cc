// The launcher's reactions to a stop request.
#include <signal.h>

#include "node/control_socket.h"
#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using namespace std::chrono_literals;

TEST_F(SupervisionTest, RankFails_IsReportedAndTheOthersStopped) {
  run();
  EXPECT_CALL(
      effects,
      report(AllOf(Property(&RankExit::rank, 3), Property(&RankExit::local_rank, 1),
                   Property(&RankExit::code, 7), Property(&RankExit::tail, "boom"),
                   Property(&RankExit::ran_for_ms, 2500), Property(&RankExit::killed_by_us, false),
                   Property(&RankExit::log_path, "log/workerlog.1"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(1, 7, 0, "boom"), start + 2500ms);
}

TEST_F(SupervisionTest, RankEndsBecauseItWasStopped_IsNoCause) {
  run();
  EXPECT_CALL(effects, report(Property(&RankExit::killed_by_us, false)));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 1, 0, ""), start);
  EXPECT_CALL(effects, report(AllOf(Property(&RankExit::killed_by_us, true),
                                    Property(&RankExit::signal, SIGTERM))));
  supervision.on_rank_ended(ended(1, 0, SIGTERM, "", true), start);
}

TEST_F(SupervisionTest, RankEndsByItselfJustBeforeItIsStopped_MayBeTheCause) {
  run();
  EXPECT_CALL(effects, report(Property(&RankExit::killed_by_us, false))).Times(2);
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 1, 0, ""), start);
  supervision.on_rank_ended(ended(1, 0, SIGKILL, ""), start);
}

TEST_F(SupervisionTest, RankLostAPeer_NobodyIsStoppedBeforeTheVerdict) {
  run();
  EXPECT_CALL(effects, report(Property(&RankExit::code, kExitPeerLost)));
  supervision.on_rank_ended(ended(0, kExitPeerLost, 0, ""), start);
  EXPECT_CALL(effects, report(AllOf(Property(&RankExit::killed_by_us, false),
                                    Property(&RankExit::signal, SIGSEGV))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(1, 0, SIGSEGV, ""), start);
}

TEST_F(SupervisionTest, HangWhileStopping_IsNone) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop_command(stop_command(SIGTERM), start);
  supervision.on_rank_stalled(stalled(1));
  EXPECT_CALL(effects, send_stacks(Property(&Stacks::clusters_size, 0)));
  supervision.on_stack_command(stack_command(1, true));
}

TEST_F(SupervisionTest, Signal_IsPassedToTheWholeJob) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGINT, _));
  EXPECT_CALL(effects, stop_ranks(SIGINT, _));
  supervision.on_signal(SIGINT, start);
  // Its own command comes back.
  supervision.on_stop_command(stop_command(SIGINT, 1), start);
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGINT));
}

TEST_F(SupervisionTest, SignalWhileTheHostIsLost_IsSentToTheNextHost) {
  run();
  EXPECT_CALL(effects, warn(_)).Times(::testing::AnyNumber());
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_host_lost({1, "node 0 was lost"});
  EXPECT_CALL(effects, ready(1)).Times(2);  // to nobody, and to the next host
  supervision.on_all_gone("");
  EXPECT_CALL(effects, request_stop(SIGINT, _)).Times(2);
  supervision.on_signal(SIGINT, start);
  RestartCommand command;
  command.set_generation(1);
  supervision.on_restart_command(command);
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGINT));
}

TEST_F(SupervisionTest, NextGenerationWhileRanksStop_WaitsForTheirEnd) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_host_lost({1, "node 0 was lost"});
  supervision.on_assignment(sample_assignment(), logs, start);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, start_ranks());
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, SecondSignal_Kills) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGINT, _));
  EXPECT_CALL(effects, stop_ranks(SIGINT, _));
  supervision.on_signal(SIGINT, start);
  EXPECT_CALL(effects, request_kill(SIGINT));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT, start);
}

TEST_F(SupervisionTest, StopMessage_PassesItsGraceTimeOn) {
  run();
  EXPECT_CALL(effects, warn(_));
  const Grace grace = std::chrono::milliseconds(1500);
  EXPECT_CALL(effects, request_stop(SIGTERM, grace));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, grace));
  supervision.on_stop(stop_request(SIGTERM, false, grace), start);
}

TEST_F(SupervisionTest, StopMessageWithKill_KillsAtOnceAndStopsNothingFirst) {
  run();
  EXPECT_CALL(effects, stop_ranks(_, _)).Times(0);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_stop(stop_request(SIGTERM, true), start);
}

TEST_F(SupervisionTest, SecondStopMessage_Kills) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop(stop_request(SIGTERM), start);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_stop(stop_request(SIGTERM), start);
}

TEST_F(SupervisionTest, StopMessageToEveryNode_IsOneStop) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, Grace(std::chrono::milliseconds(7))));
  StopCommand command = stop_command(SIGTERM);
  command.set_grace_ms(7);
  supervision.on_stop_command(command, start);
  EXPECT_CALL(effects, kill_ranks()).Times(0);
  supervision.on_stop(stop_request(SIGTERM), start + std::chrono::milliseconds(20));
}

TEST_F(SupervisionTest, SignalThatCameToAllNodes_IsOneStop) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop_command(stop_command(SIGTERM), start);
  EXPECT_CALL(effects, kill_ranks()).Times(0);
  supervision.on_signal(SIGTERM, start);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM, start);
}

TEST_F(SupervisionTest, SecondSignalElsewhere_Kills) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGINT, _));
  supervision.on_stop_command(stop_command(SIGINT), start);
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_stop_command(kill_command(SIGINT), start);
}

TEST_F(SupervisionTest, InterruptHereWhileAnotherNodesStopIsKnown_KillsUnlessItIsACopy) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGINT, _));
  supervision.on_stop_command(stop_command(SIGINT), start);
  supervision.on_stop_command(stop_command(SIGINT, 2), start + 300ms);  // the first one counts
  EXPECT_CALL(effects, request_kill(SIGINT));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT, start + 401ms);
}

TEST_F(SupervisionTest, EvictionNodeByNode_KillsNothing) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop_command(stop_command(SIGTERM), start);
  EXPECT_CALL(effects, request_kill(_)).Times(0);
  EXPECT_CALL(effects, kill_ranks()).Times(0);
  supervision.on_signal(SIGTERM, start + 5s);
}

TEST_F(SupervisionTest, SignalWhileTheCauseOfAFailureIsSought_IsAStop) {
  run();
  EXPECT_CALL(effects, report(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 1, 0, ""), start);
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  supervision.on_signal(SIGTERM, start);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM, start + 1s);
}

// pkill -f may reach a rank before the launcher.
TEST_F(SupervisionTest, SignalThatHasJustEndedARank_IsNoSecondOne) {
  run();
  EXPECT_CALL(effects, report(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 0, SIGTERM, ""), start);
  EXPECT_CALL(effects, print_verdict(_));
  supervision.on_verdict(failed_verdict(2, 0, SIGTERM));
  supervision.on_signal(SIGTERM, start + 900ms);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM, start + 2s);
}

TEST_F(SupervisionTest, SignalLongAfterTheFailure_KillsTheRanksThatAreLeft) {
  run();
  EXPECT_CALL(effects, report(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 128 + SIGTERM, 0, ""), start);
  EXPECT_CALL(effects, print_verdict(_));
  supervision.on_verdict(failed_verdict(2, 128 + SIGTERM));
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM, start + 1s);
}

TEST_F(SupervisionTest, StarterGone_IsAHangupButNoSecondSignal) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGHUP, _));
  EXPECT_CALL(effects, stop_ranks(SIGHUP, _));
  supervision.on_starter_lost(start);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  supervision.on_starter_lost(start + 1s);
}

TEST_F(SupervisionTest, SignalDuringTheChecks_EndsTheWholeJob) {
  supervision.step(Assigned{});
  EXPECT_CALL(effects, warn(HasSubstr("before its ranks start")));
  EXPECT_CALL(effects, request_stop(SIGINT, _));
  EXPECT_CALL(effects, end(_)).Times(0);
  supervision.on_signal(SIGINT, start);
  EXPECT_CALL(effects, finish_node());
  supervision.on_stop_command(stop_command(SIGINT, 1), start);
  supervision.step(CheckFailed{"a check failed"});              // the stop is the outcome
  supervision.on_assignment(sample_assignment(), logs, start);  // without start_ranks()
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGINT));
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, SecondAndThirdSignalDuringTheChecks_KillAndEndAtOnce) {
  supervision.step(Assigned{});
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGINT, _));
  supervision.on_signal(SIGINT, start);
  EXPECT_CALL(effects, request_kill(SIGINT));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT, start);
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_signal(SIGINT, start);
}

// The other nodes are about to start.
TEST_F(SupervisionTest, SignalJustBeforeTheAssignment_EndsTheWholeJob) {
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM, start);
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  EXPECT_CALL(effects, end(_)).Times(0);
  supervision.step(Assigned{});
  supervision.on_all_gone("");
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, finish_node());
  supervision.on_stop_command(stop_command(SIGTERM, 1), start);
  EXPECT_CALL(effects, kill_ranks());
  EXPECT_CALL(effects, end(128 + SIGTERM));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGTERM));
}

// Its checks, for instance, take longer than those of others.
TEST_F(SupervisionTest, StopCommandBeforeTheStart_StartsNothing) {
  supervision.step(Assigned{});
  EXPECT_CALL(effects, warn(HasSubstr("node 0 (10.0.0.1) received SIGTERM")));
  EXPECT_CALL(effects, finish_node());  // the others need not wait for the checks
  supervision.on_stop_command(stop_command(SIGTERM), start);
  supervision.on_stop_command(kill_command(SIGTERM), start);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, record_verdict(_));
  EXPECT_CALL(effects, finish_node()).Times(2);                 // again, which changes nothing
  EXPECT_CALL(effects, kill_ranks());                           // answered by:
  supervision.on_assignment(sample_assignment(), logs, start);  // without start_ranks()
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(128 + SIGTERM));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGTERM));
}

TEST_F(SupervisionTest, StopCommandBeforeTheSecondStart_StartsNothing) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  RestartCommand command;
  command.set_generation(1);
  supervision.on_restart_command(command);
  EXPECT_CALL(effects, ready(1));
  supervision.on_all_gone("");
  EXPECT_CALL(effects, warn(HasSubstr("node 0 (10.0.0.1) received SIGTERM")));
  EXPECT_CALL(effects, finish_node()).Times(2);  // at once, and when it would start
  supervision.on_stop_command(stop_command(SIGTERM), start);
  supervision.on_assignment(sample_assignment(), logs, start);  // without start_ranks()
  EXPECT_CALL(effects, end(128 + SIGTERM));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGTERM));
}

TEST_F(SupervisionTest, SignalsWhileOnlyOthersRun_StopThemThenKillThemThenEndAtOnce) {
  run();
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  supervision.on_signal(SIGTERM, start);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, end(_)).Times(0);
  supervision.on_signal(SIGTERM, start);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, end(128 + SIGTERM));
  supervision.on_signal(SIGTERM, start);
}

TEST_F(SupervisionTest, SignalWhileForming_EndsWithoutRanks) {
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT, start);
  supervision.on_assignment(sample_assignment(), logs, start);  // without start_ranks()
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, StopCommand_SignalsTheRanks) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_stop_command(stop_command(SIGTERM), start);
}

TEST_F(SupervisionTest, NodeLost_HasACodeOfItsOwn) {
  run();
  EXPECT_CALL(effects, print_verdict("node 0 (10.0.0.1) was lost"));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(verdict_of(Verdict::NODE_LOST));
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLost_IsReportedAndTheVerdictKept) {
  run();
  EXPECT_CALL(effects, report_error(_));
  EXPECT_CALL(effects, report_failure("its guardian was killed"));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  const Verdict verdict = verdict_of(Verdict::NODE_LOST);
  EXPECT_CALL(effects, record_verdict(Property(&Verdict::kind, Verdict::NODE_LOST)));
  EXPECT_CALL(effects, print_verdict(verdict.message()));
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_verdict(verdict);
}

TEST_F(SupervisionTest, GuardianHangs_IsReportedAsThat) {
  run();
  EXPECT_CALL(effects, report_error(HasSubstr("does not respond")));
  EXPECT_CALL(effects, report_failure("its guardian did not respond"));
  supervision.step(GuardianLost{.hung = true});
}

// While the job formed, or between two generations: no stop command came before.
TEST_F(SupervisionTest, JobStoppedElsewhereWithoutACommand_IsReported) {
  EXPECT_CALL(effects, kill_ranks());
  EXPECT_CALL(effects, print_verdict(_));
  supervision.on_verdict(verdict_of(Verdict::STOPPED, SIGINT));
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLostBeforeTheStart_EndsThisNode) {
  EXPECT_CALL(effects, report_error(_));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLostAfterAVerdict_TheVerdictDecides) {
  run();
  EXPECT_CALL(effects, report_error(_));
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(failed_verdict(0, 9));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(9));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLostBetweenGenerations_IsReported) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  RestartCommand command;
  command.set_generation(1);
  supervision.on_restart_command(command);
  EXPECT_CALL(effects, ready(1));
  supervision.on_all_gone("");
  EXPECT_CALL(effects, report_failure(_));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_verdict(verdict_of(Verdict::NODE_LOST));
}

TEST_F(SupervisionTest, GuardianLostWhileTheHostIsLost_LeavesTheJob) {
  run();
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_host_lost({1, "node 0 was lost"});
  EXPECT_CALL(effects, report_error(_)).Times(2);
  EXPECT_CALL(effects, report_failure(_));  // no host receives it
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, Refusal_EndsWithItsCode) {
  EXPECT_CALL(effects, report_error(HasSubstr("node 1 is missing")));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_refusal(Error(ErrorCode::kTimeout, "node 1 is missing"));
  EXPECT_CALL(effects, end(kExitRendezvous));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, RefusalForMismatch_IsAUsageError) {
  EXPECT_CALL(effects, report_error(_));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_refusal(Error(ErrorCode::kUsage, "another version"));
  EXPECT_CALL(effects, end(2));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, RefusalForALostPeer_IsNotTheCodeOfARank) {
  EXPECT_CALL(effects, report_error(_));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_refusal(Error(ErrorCode::kPeerLost, "was silent for 3 s"));
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, ProcessesThatCannotBeKilled_AreNamed) {
  run();
  EXPECT_CALL(effects, report_error(HasSubstr("pid 77 (cp)")));
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("pid 77 (cp), waiting in nfs_wait");
}

}  // namespace
}  // namespace fleet
