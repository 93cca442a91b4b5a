#include "node/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using Meaning = StopSignals::Meaning;

constexpr StopSignals::Time kStopStart = StopSignals::Time() + 100s;

TEST(StopSignals, FirstSignal_StopsAndEachLaterOneKills) {
  StopSignals signals;
  EXPECT_FALSE(signals.any());
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart), Meaning::kStop);
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart + 1ms), Meaning::kKill);
  EXPECT_EQ(signals.on_signal(SIGINT, kStopStart + 1h), Meaning::kKill);
  EXPECT_EQ(signals.own(), SIGTERM);
}

TEST(StopSignals, OwnOrderThatComesBack_ChangesNothing) {
  StopSignals signals;
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart), Meaning::kStop);
  signals.on_stop_command(SIGTERM, kStopStart + 1ms);
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart + 2ms), Meaning::kKill);
}

TEST(StopSignals, SameSignalSoonAfterAnotherNodes_IsACopyOnce) {
  StopSignals signals;
  signals.on_stop_command(SIGTERM, kStopStart);
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart + StopSignals::kFanOut), Meaning::kCopy);
  EXPECT_EQ(signals.on_signal(SIGTERM, kStopStart + StopSignals::kFanOut), Meaning::kKill);
}

TEST(StopSignals, InterruptLongAfterAnotherNodes_Kills) {
  StopSignals signals;
  signals.on_stop_command(SIGINT, kStopStart);
  signals.on_stop_command(SIGINT, kStopStart + 200ms);  // of a third node
  EXPECT_EQ(signals.on_signal(SIGINT, kStopStart + StopSignals::kFanOut + 1ms), Meaning::kKill);
}

// A cluster evicts a job node by node.
TEST(StopSignals, FirstSignalOfEachNode_IsACopyHoweverLate) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    StopSignals signals;
    signals.on_stop_command(signal, kStopStart);
    EXPECT_EQ(signals.on_signal(signal, kStopStart + 1min), Meaning::kCopy);
    EXPECT_EQ(signals.on_signal(signal, kStopStart + 1min), Meaning::kKill);
  }
}

TEST(StopSignals, OtherSignalThanAnotherNodes_Kills) {
  StopSignals signals;
  signals.on_stop_command(SIGTERM, kStopStart);
  EXPECT_EQ(signals.on_signal(SIGINT, kStopStart + 1ms), Meaning::kKill);
}

TEST(StopSignals, SignalThatEndedARankJustBefore_HasStruckIt) {
  StopSignals signals;
  EXPECT_FALSE(signals.has_struck_a_rank());
  signals.on_rank_struck(SIGTERM, kStopStart);
  EXPECT_FALSE(signals.has_struck_a_rank());  // this launcher has received none
  signals.on_signal(SIGTERM, kStopStart + 1ms);
  EXPECT_TRUE(signals.has_struck_a_rank());
  StopSignals others, late;
  others.on_rank_struck(SIGKILL, kStopStart);
  others.on_signal(SIGTERM, kStopStart + 1ms);
  EXPECT_FALSE(others.has_struck_a_rank());
  late.on_rank_struck(SIGTERM, kStopStart);
  late.on_signal(SIGTERM, kStopStart + SignalCopies::kWindow);
  EXPECT_FALSE(late.has_struck_a_rank());
}

}  // namespace
}  // namespace fleet
