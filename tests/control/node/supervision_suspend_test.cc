// Ctrl-Z, and ranks that a terminal stops.
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

struct SuspensionTest : SupervisionTest {
  void ranks_suspended() {
    supervision.step(envelope(&wire::GuardianEvent::mutable_suspended, wire::RanksSuspended()));
  }
  void rank_stopped(int local_rank, int signal) {
    wire::RankStopped stopped;
    stopped.set_local_rank(local_rank);
    stopped.set_signal(signal);
    supervision.step(envelope(&wire::GuardianEvent::mutable_stopped, stopped));
  }
};

TEST_F(SuspensionTest, OneNode_StopsRanksThenLauncherAndContinuesBoth) {
  run();
  EXPECT_CALL(effects, suspend_ranks());
  supervision.step(SuspendRequest{});
  EXPECT_CALL(effects, suspend_launcher());
  ranks_suspended();
  EXPECT_CALL(effects, resume_ranks());
  supervision.step(LauncherContinued{});
}

TEST_F(SuspensionTest, SeveralNodes_IsRefusedWithALine) {
  run();
  EXPECT_CALL(effects, warn(HasSubstr("Ctrl-Z")));
  supervision.step(SuspendRequest{.several_nodes = true});
}

TEST_F(SuspensionTest, JobThatEnds_IsNotSuspended) {
  run();
  EXPECT_CALL(effects, warn(_)).Times(2);
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_signal(SIGTERM, start);
  supervision.step(SuspendRequest{});
}

TEST_F(SuspensionTest, StopWhileTheRanksAreBeingSuspended_GoesOn) {
  run();
  EXPECT_CALL(effects, suspend_ranks());
  supervision.step(SuspendRequest{});
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, request_stop(SIGTERM, _));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_signal(SIGTERM, start);
  EXPECT_CALL(effects, resume_ranks());
  ranks_suspended();
}

TEST_F(SuspensionTest, RankThatUsesTheTerminal_IsNamedAtOnce) {
  run();
  EXPECT_CALL(effects, report_error(::testing::AllOf(HasSubstr("rank 3"), HasSubstr("SIGTTIN"),
                                                     HasSubstr("/dev/tty"))));
  rank_stopped(1, SIGTTIN);
  EXPECT_CALL(effects, report_error(::testing::AllOf(HasSubstr("rank 2"), HasSubstr("SIGTTOU"))));
  rank_stopped(0, SIGTTOU);
}

}  // namespace
}  // namespace fleet
