// The text of a verdict.
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::StartsWith;
using namespace std::chrono_literals;

std::unique_ptr<World> world_of(int trainers) {
  auto world = std::make_unique<World>();
  world->set_world_size(trainers);
  world->set_servers(2);
  for (int i = 0; i < 2; ++i) world->add_nodes();
  return world;
}

TEST(VerdictText, FailedServer_IsNamedAsOne) {
  Verdict verdict = failed_verdict(1, 7);
  verdict.mutable_exit()->set_server(true);
  EXPECT_THAT(
      verdict_text(verdict, world_of(4).get()),
      AllOf(HasSubstr("server 1 of 2 exited with 7"), HasSubstr("server process with rank=[1]")));
}

TEST(VerdictText, FailedRank_IsWhatHappenedThenPaddlesLine) {
  Verdict verdict = failed_verdict(3, 7);
  verdict.mutable_exit()->set_cause("KeyError: 'missing_key'");
  EXPECT_EQ(verdict_text(verdict, world_of(4).get()),
            "rank 3 of 4 exited with 7: KeyError: 'missing_key' (log/workerlog.1 on node 1)\n"
            "ABORT!!! Out of all 4 trainers, the trainer process with rank=[3] was aborted. Please "
            "check its log.\n"
            "  local rank 1 on node 1 (10.0.0.2), after 12.3 s\n"
            "  the last lines of its log log/workerlog.1:\n"
            "    Traceback:\n"
            "      boom");
}

TEST(VerdictText, KilledRank_NamesTheSignalAndWhatIsKnown) {
  Verdict verdict = failed_verdict(1, 0, SIGKILL);
  verdict.mutable_exit()->set_note("the kernel: out of memory");
  auto world = world_of(2);
  world->mutable_nodes()->RemoveLast();
  EXPECT_THAT(verdict_text(verdict, world.get()), StartsWith("rank 1 of 2 was killed by SIGKILL"));
}

TEST(VerdictText, LastLines_AreResolvedAndCommandNoTerminal) {
  Verdict verdict = failed_verdict(1, 7);
  verdict.mutable_exit()->set_tail(
      "\033]52;c;cm0gLXJm\007step 1\rstep 2\n\033[2J\033[31mred\033[0m");
  EXPECT_THAT(verdict_text(verdict, world_of(2).get()), EndsWith(":\n    step 2\n    red"));
  EXPECT_THAT(verdict_text(verdict, world_of(2).get(), {.colors = true}),
              EndsWith(":\n    step 2\n    \033[31mred\033[0m"));
}

TEST(VerdictText, WithoutPaddlesLineAndShownLines_IsTheRest) {
  EXPECT_EQ(verdict_text(failed_verdict(3, 7), world_of(4).get(),
                         {.abort_line = false, .last_lines = false}),
            "rank 3 of 4 exited with 7 (log/workerlog.1 on node 1)\n"
            "  local rank 1 on node 1 (10.0.0.2), after 12.3 s");
}

// Node 1 prints a verdict of a rank: one of its own, or of node 0.
std::string printed(const MessageStyle& style, int node_rank, bool shown) {
  Supervision supervision(std::chrono::seconds(10), style);
  supervision.step(GenerationBegins{sample_assignment(), {}}, {});
  Verdict verdict = failed_verdict(node_rank * 2, 7);
  verdict.mutable_exit()->set_shown(shown);
  std::string text;
  for (const SupervisionAction& action :
       supervision.step(envelope(&wire::HostMessage::mutable_verdict, verdict), {})) {
    if (const auto* line = std::get_if<ShowLine>(&action)) text += line->text;
  }
  return text;
}

TEST(VerdictText, LinesOnTheScreen_AreNotPrintedAgain) {
  const auto repeats = [](const MessageStyle& style, int node_rank, bool shown) {
    return printed(style, node_rank, shown).find("boom") != std::string::npos;
  };
  const MessageStyle own = {.brief = true, .shown = ShownOutput::kOfThisNode};
  const MessageStyle all = {.brief = true, .shown = ShownOutput::kOfAllNodes};
  EXPECT_FALSE(repeats(own, 1, true));
  EXPECT_TRUE(repeats(own, 1, false));
  EXPECT_TRUE(repeats(own, 0, true));  // on the console of node 0
  EXPECT_FALSE(repeats(all, 0, true));
  EXPECT_TRUE(repeats({.brief = true}, 1, true));
  EXPECT_TRUE(repeats({.shown = ShownOutput::kOfAllNodes}, 1, true));  // as Paddle does
}

TEST(VerdictText, PaddlesLine_IsForItsJobs) {
  EXPECT_THAT(printed({}, 1, true), HasSubstr("ABORT!!!"));
  EXPECT_THAT(printed({.brief = true}, 1, true), ::testing::Not(HasSubstr("ABORT!!!")));
}

TEST(VerdictText, RankThatIsShown_IsReportedAsShown) {
  Supervision supervision(std::chrono::seconds(10), {});
  wire::SpawnRanks ranks;
  for (const int streams : {2, 3}) ranks.add_ranks()->set_shown_streams(streams);
  supervision.step(GenerationBegins{sample_assignment(), ranks}, {});
  std::vector<bool> shown;
  for (const int rank : {0, 1}) {
    const auto event = envelope(&wire::GuardianEvent::mutable_ended, ended(rank, 1, 0, ""));
    for (const SupervisionAction& action : supervision.step(event, {})) {
      const auto* message = std::get_if<wire::NodeMessage>(&action);
      if (message && message->has_exit()) shown.push_back(message->exit().shown());
    }
  }
  EXPECT_THAT(shown, ::testing::ElementsAre(false, true));
}

TEST(VerdictText, EmptyLog_SaysSo) {
  Verdict verdict = failed_verdict(3, 7);
  verdict.mutable_exit()->clear_tail();
  EXPECT_THAT(verdict_text(verdict, nullptr), HasSubstr("its log log/workerlog.1 is empty"));
}

TEST(VerdictText, Success_IsSilent) {
  EXPECT_EQ(verdict_text(verdict_of(Verdict::SUCCESS), nullptr), "");
}

}  // namespace
}  // namespace fleet
