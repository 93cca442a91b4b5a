// What people read of a verdict.
#include <signal.h>

#include "tests/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

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
