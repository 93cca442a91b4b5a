#include "node/supervision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StrictMock;
using namespace std::chrono_literals;

class MockEffects : public SupervisionEffects {
 public:
  MOCK_METHOD(void, report, (const RankExit&), (override));
  MOCK_METHOD(void, report_pace, (const std::vector<RankPace>&), (override));
  MOCK_METHOD(void, report_stall, (const RankStall&), (override));
  MOCK_METHOD(void, collect_stacks, (), (override));
  MOCK_METHOD(void, send_stacks, (const std::vector<RankStack>&), (override));
  MOCK_METHOD(void, finish_node, (), (override));
  MOCK_METHOD(void, ready, (int), (override));
  MOCK_METHOD(void, request_kill, (int), (override));
  MOCK_METHOD(void, request_stop, (int), (override));
  MOCK_METHOD(void, stop_ranks, (int), (override));
  MOCK_METHOD(void, kill_ranks, (), (override));
  MOCK_METHOD(void, keep, (const Verdict&), (override));
  MOCK_METHOD(void, say, (const std::string&), (override));
  MOCK_METHOD(void, tell_verdict, (const std::string&), (override));
  MOCK_METHOD(void, fail, (const std::string&), (override));
  MOCK_METHOD(void, end, (int), (override));
};

RankEnded ended(int local_rank, int code, int signal, const std::string& tail,
                bool told_to_stop = false) {
  RankEnded message;
  message.local_rank = local_rank;
  message.code = code;
  message.signal = signal;
  message.tail = tail;
  message.told_to_stop = told_to_stop;
  return message;
}

// Node 1 of two, with two ranks each: this node's are 2 and 3.
Assignment sample_assignment() {
  auto world = std::make_shared<World>();
  world->world_size = 4;
  world->nodes.resize(2);
  for (int node = 0; node < 2; ++node) {
    world->nodes[node].node_rank = node;
    world->nodes[node].first_rank = 2 * node;
    world->nodes[node].ports = {6070, 6071};
    world->nodes[node].devices.resize(2);
  }
  Assignment assignment;
  assignment.world = world;
  assignment.node_rank = 1;
  return assignment;
}

Verdict failed_verdict(int rank, int code, int signal = 0) {
  Verdict verdict;
  verdict.kind = VerdictKind::kRankFailed;
  verdict.node = "10.0.0.2";
  verdict.exit.rank = rank;
  verdict.exit.local_rank = rank % 2;
  verdict.exit.node_rank = rank / 2;
  verdict.exit.code = code;
  verdict.exit.signal = signal;
  verdict.exit.ran_for = 12'345ms;
  verdict.exit.log_path = "log/workerlog.1";
  verdict.exit.tail = "Traceback:\n  boom";
  return verdict;
}

Verdict verdict_of(VerdictKind kind, int signal = 0) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.signal = signal;
  verdict.message = "node 0 (10.0.0.1) was lost";
  return verdict;
}

struct SupervisionTest : ::testing::Test {
  SupervisionTest() { EXPECT_CALL(effects, keep).Times(::testing::AnyNumber()); }
  void run() { ASSERT_TRUE(supervision.on_assignment(sample_assignment(), logs, start)); }
  StrictMock<MockEffects> effects;
  Supervision supervision{effects};
  const Supervision::Time start = Supervision::Time() + 100s;
  const std::vector<std::string> logs = {"log/workerlog.0", "log/workerlog.1"};
};

TEST_F(SupervisionTest, AllRanksEndWell_EndsWithZeroOnceEverybodyHas) {
  run();
  supervision.on_rank_ended(ended(0, 0, 0, ""), start + 1s);
  supervision.on_rank_ended(ended(1, 0, 0, ""), start + 1s);
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(0));
  supervision.on_verdict(verdict_of(VerdictKind::kSuccess));
}

// This node of the job above with its first rank as a parameter server.
Assignment assignment_with_servers(int servers) {
  Assignment assignment = sample_assignment();
  auto world = std::make_shared<World>(*assignment.world);
  world->servers = world->nodes[1].servers = servers;
  world->world_size -= servers;
  assignment.world = world;
  return assignment;
}

TEST_F(SupervisionTest, TrainersEndWell_ServersAreStoppedAfterTheVerdict) {
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(1), logs, start));
  EXPECT_CALL(effects, finish_node());
  supervision.on_rank_ended(ended(1, 0, 0, ""), start);
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_verdict(verdict_of(VerdictKind::kSuccess));
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::killed_by_us, true),
                                    Field(&RankExit::server, true), Field(&RankExit::rank, 0))));
  supervision.on_rank_ended(ended(0, 0, SIGTERM, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(0));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, ServersOnly_HaveFinishedWhenTheOthersHave) {
  EXPECT_CALL(effects, finish_node());
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(2), logs, start));
}

TEST_F(SupervisionTest, ServerFails_EndsTheJob) {
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(1), logs, start));
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::server, true), Field(&RankExit::code, 3))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(0, 3, 0, ""), start);
}

TEST_F(SupervisionTest, RankFails_IsReportedAndTheOthersStopped) {
  run();
  EXPECT_CALL(effects,
              report(AllOf(Field(&RankExit::rank, 3), Field(&RankExit::local_rank, 1),
                           Field(&RankExit::code, 7), Field(&RankExit::tail, "boom"),
                           Field(&RankExit::ran_for, 2500ms), Field(&RankExit::killed_by_us, false),
                           Field(&RankExit::log_path, "log/workerlog.1"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(1, 7, 0, "boom"), start + 2500ms);
}

TEST_F(SupervisionTest, RankEndsBecauseItWasStopped_IsNoCause) {
  run();
  EXPECT_CALL(effects, report(Field(&RankExit::killed_by_us, false)));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(0, 1, 0, ""), start);
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::killed_by_us, true),
                                    Field(&RankExit::signal, SIGTERM))));
  supervision.on_rank_ended(ended(1, 0, SIGTERM, "", true), start);
}

TEST_F(SupervisionTest, RankEndsByItselfJustBeforeItIsStopped_MayBeTheCause) {
  run();
  EXPECT_CALL(effects, report(Field(&RankExit::killed_by_us, false))).Times(2);
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(0, 1, 0, ""), start);
  supervision.on_rank_ended(ended(1, 0, SIGKILL, ""), start);
}

TEST_F(SupervisionTest, RankLostAPeer_NobodyIsStoppedBeforeTheVerdict) {
  run();
  EXPECT_CALL(effects, report(Field(&RankExit::code, kExitPeerLost)));
  supervision.on_rank_ended(ended(0, kExitPeerLost, 0, ""), start);
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::killed_by_us, false),
                                    Field(&RankExit::signal, SIGSEGV))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(1, 0, SIGSEGV, ""), start);
}

TEST_F(SupervisionTest, WhatTheKernelKnows_IsReported) {
  run();
  RankEnded killed = ended(0, 0, SIGKILL, "");
  killed.note = "the kernel killed it, out of memory";
  killed.oom = true;
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::oom, true),
                                    Field(&RankExit::note, HasSubstr("out of memory")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(killed, start);
  // What we have killed ourselves needs no explanation.
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::oom, false), Field(&RankExit::note, ""))));
  killed.local_rank = 1;
  killed.told_to_stop = true;
  supervision.on_rank_ended(killed, start);
}

TEST_F(SupervisionTest, Verdict_IsKept) {
  run();
  EXPECT_CALL(effects, keep(Field(&Verdict::kind, VerdictKind::kNodeLost)));
  EXPECT_CALL(effects, tell_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_verdict(verdict_of(VerdictKind::kNodeLost));
}

TEST_F(SupervisionTest, RankStalls_IsReportedAndLookedAt) {
  run();
  EXPECT_CALL(effects,
              report_stall(AllOf(Field(&RankStall::rank, 3), Field(&RankStall::local_rank, 1),
                                 Field(&RankStall::quiet_for, 5000ms),
                                 Field(&RankStall::log_path, "log/workerlog.1"))));
  supervision.on_rank_stalled({1, 5000});
  EXPECT_CALL(effects, say(HasSubstr("hangs")));
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_order({1});
  EXPECT_CALL(effects, send_stacks(::testing::ElementsAre(
                           AllOf(Field(&RankStack::rank, 2), Field(&RankStack::state, 'S'),
                                 Field(&RankStack::frames, ::testing::ElementsAre("wait"))),
                           AllOf(Field(&RankStack::rank, 3), Field(&RankStack::state, 'T')))));
  supervision.on_stacks({{{0, "S", "futex", {"wait"}, ""}, {1, "T", "", {}, "denied"}}});
}

TEST_F(SupervisionTest, Progress_IsReportedByGlobalRank) {
  EXPECT_CALL(effects, report_pace(_)).Times(0);
  supervision.on_progress({{{.local_rank = 1, .steps = 5}}});  // before anything runs
  run();
  EXPECT_CALL(effects, report_pace(::testing::ElementsAre(
                           AllOf(Field(&RankPace::rank, 3), Field(&RankPace::local_rank, 1),
                                 Field(&RankPace::steps, 5), Field(&RankPace::checkpoint, 4)))));
  supervision.on_progress({{{.local_rank = 1, .steps = 5, .checkpoint = 4}}});
}

TEST_F(SupervisionTest, HangWhileStopping_IsNone) {
  run();
  EXPECT_CALL(effects, say(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_stop_order({SIGTERM, 0, "10.0.0.1"});
  supervision.on_rank_stalled({1, 5000});
  supervision.on_stack_order({1});
}

TEST_F(SupervisionTest, FirstFailureElsewhere_DecidesTheExitCode) {
  run();
  EXPECT_CALL(effects, tell_verdict(HasSubstr("rank=[0]")));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_verdict(failed_verdict(0, 0, SIGSEGV));
  EXPECT_CALL(effects, report(Field(&RankExit::killed_by_us, true))).Times(2);
  supervision.on_rank_ended(ended(0, 1, 0, "", true), start);
  supervision.on_rank_ended(ended(1, 1, 0, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(128 + SIGSEGV));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, NotStarted_IsAFailureWithItsReason) {
  run();
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::code, 127),
                                    Field(&RankExit::note, HasSubstr("cannot execute")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_not_started(0, "cannot execute 'x'", start);
}

TEST_F(SupervisionTest, KilledFromOutside_IsExplained) {
  run();
  EXPECT_CALL(effects, report(Field(&RankExit::note, HasSubstr("out of memory"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_rank_ended(ended(0, 0, SIGKILL, ""), start);
}

TEST_F(SupervisionTest, Signal_IsPassedToTheWholeJob) {
  run();
  EXPECT_CALL(effects, say(HasSubstr("SIGINT")));
  EXPECT_CALL(effects, request_stop(SIGINT));
  EXPECT_CALL(effects, stop_ranks(SIGINT));
  supervision.on_signal(SIGINT);
  // Its own order comes back.
  supervision.on_stop_order({SIGINT, 1, "10.0.0.2"});
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_verdict(verdict_of(VerdictKind::kStopped, SIGINT));
}

TEST_F(SupervisionTest, SignalWhileTheHostIsLost_IsToldToTheNextOne) {
  run();
  EXPECT_CALL(effects, say(_)).Times(::testing::AnyNumber());
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_host_lost({1, "node 0 was lost"});
  EXPECT_CALL(effects, ready(1)).Times(2);  // to nobody, and to the next host
  supervision.on_all_gone("");
  EXPECT_CALL(effects, request_stop(SIGINT)).Times(2);
  supervision.on_signal(SIGINT);
  RestartOrder order;
  order.epoch = 1;
  supervision.on_restart_order(order);
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_verdict(verdict_of(VerdictKind::kStopped, SIGINT));
}

TEST_F(SupervisionTest, SecondSignal_Kills) {
  run();
  EXPECT_CALL(effects, say(_));
  EXPECT_CALL(effects, request_stop(SIGINT));
  EXPECT_CALL(effects, stop_ranks(SIGINT));
  supervision.on_signal(SIGINT);
  EXPECT_CALL(effects, request_kill(SIGINT));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT);
}

TEST_F(SupervisionTest, SignalThatCameToAllNodes_IsOneStop) {
  run();
  EXPECT_CALL(effects, say(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_stop_order({SIGTERM, 0, "10.0.0.1"});
  EXPECT_CALL(effects, kill_ranks()).Times(0);
  supervision.on_signal(SIGTERM);
  ::testing::Mock::VerifyAndClearExpectations(&effects);
  EXPECT_CALL(effects, request_kill(SIGTERM));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGTERM);
}

TEST_F(SupervisionTest, SecondSignalElsewhere_Kills) {
  run();
  EXPECT_CALL(effects, say(_));
  EXPECT_CALL(effects, stop_ranks(SIGINT));
  supervision.on_stop_order({SIGINT, 0, "10.0.0.1"});
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_stop_order({SIGINT, 0, "10.0.0.1", true});
}

TEST_F(SupervisionTest, StacksThatWereAskedFor_AreCollectedWithoutAlarm) {
  run();
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_order({0, false});
}

TEST_F(SupervisionTest, SignalWhileOnlyOthersRun_EndsAtOnce) {
  run();
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(128 + SIGTERM));
  supervision.on_signal(SIGTERM);
}

TEST_F(SupervisionTest, SignalWhileForming_EndsWithoutRanks) {
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_signal(SIGINT);
  EXPECT_FALSE(supervision.on_assignment(sample_assignment(), logs, start));
  EXPECT_CALL(effects, end(128 + SIGINT));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, StopOrder_SignalsTheRanks) {
  run();
  EXPECT_CALL(effects, say(AllOf(HasSubstr("10.0.0.1"), HasSubstr("SIGTERM"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_stop_order({SIGTERM, 0, "10.0.0.1"});
}

TEST_F(SupervisionTest, NodeLost_HasACodeOfItsOwn) {
  run();
  EXPECT_CALL(effects, tell_verdict("node 0 (10.0.0.1) was lost"));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_verdict(verdict_of(VerdictKind::kNodeLost));
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLost_EndsTheJob) {
  run();
  EXPECT_CALL(effects, fail(HasSubstr("guardian")));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, end(kExitNodeLost));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, GuardianLostAfterAVerdict_TheVerdictDecides) {
  run();
  EXPECT_CALL(effects, fail(_));
  EXPECT_CALL(effects, tell_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM));
  supervision.on_verdict(failed_verdict(0, 9));
  supervision.on_guardian_lost();
  EXPECT_CALL(effects, end(9));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, Refusal_EndsWithItsCode) {
  EXPECT_CALL(effects, fail(HasSubstr("node 1 is missing")));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_refusal(Error(ErrorCode::kTimeout, "node 1 is missing"));
  EXPECT_CALL(effects, end(kExitRendezvous));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, RefusalForMismatch_IsAUsageError) {
  EXPECT_CALL(effects, fail(_));
  EXPECT_CALL(effects, kill_ranks());
  supervision.on_refusal(Error(ErrorCode::kUsage, "another version"));
  EXPECT_CALL(effects, end(2));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, ProcessesThatCannotBeKilled_AreNamed) {
  run();
  EXPECT_CALL(effects, fail(HasSubstr("pid 77 (cp)")));
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("pid 77 (cp), waiting in nfs_wait");
}

std::unique_ptr<World> world_of(int trainers) {
  auto world = std::make_unique<World>();
  world->world_size = trainers;
  world->servers = 2;
  return world;
}

TEST(VerdictText, FailedServer_IsNamedAsOne) {
  Verdict verdict = failed_verdict(1, 7);
  verdict.exit.server = true;
  EXPECT_THAT(verdict_text(verdict, world_of(4).get()),
              AllOf(HasSubstr("Out of all 2 servers, the server process with rank=[1]"),
                    HasSubstr("server 1 (local rank 1) on node 0")));
}

TEST(VerdictText, FailedRank_IsPaddlesLineAndTheCause) {
  EXPECT_EQ(verdict_text(failed_verdict(3, 7), world_of(4).get()),
            "ABORT!!! Out of all 4 trainers, the trainer process with rank=[3] was aborted. Please "
            "check its log.\n"
            "  rank 3 (local rank 1) on node 1 (10.0.0.2) exited with code 7 after 12.3 s\n"
            "  the last lines of its log log/workerlog.1:\n"
            "    Traceback:\n"
            "      boom");
}

TEST(VerdictText, KilledRank_NamesTheSignal) {
  EXPECT_THAT(verdict_text(failed_verdict(1, 0, SIGKILL), world_of(2).get()),
              HasSubstr("was killed by SIGKILL"));
}

TEST(VerdictText, EmptyLog_SaysSo) {
  Verdict verdict = failed_verdict(3, 7);
  verdict.exit.tail.clear();
  EXPECT_THAT(verdict_text(verdict, nullptr), HasSubstr("its log log/workerlog.1 is empty"));
}

TEST(VerdictText, Success_IsSilent) {
  EXPECT_EQ(verdict_text(verdict_of(VerdictKind::kSuccess), nullptr), "");
}

}  // namespace
}  // namespace fleet
