#include "rendezvous/host_monitor.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr HostMonitor::Time kStart = HostMonitor::Time() + 100s;

HostMonitor welcomed(int nodes) {
  wire::Welcome welcome;
  welcome.set_heartbeat_interval_ms(1'000);
  welcome.set_max_silence_ms(3'000);
  HostMonitor monitor;
  monitor.received(kStart, false);
  monitor.on_welcome(welcome, "", nodes, kStart);
  return monitor;
}

TEST(HostMonitor, Heartbeats_AreSentAtTheirInterval) {
  HostMonitor monitor = welcomed(2);
  const auto first = monitor.take_heartbeat(kStart);
  ASSERT_TRUE(first);  // at once, in a small job
  EXPECT_EQ(first->heartbeat().count(), 1);
  EXPECT_EQ(monitor.next_heartbeat(), kStart + 1s);
  EXPECT_FALSE(monitor.take_heartbeat(kStart + 999ms));
  const auto second = monitor.take_heartbeat(kStart + 1s);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->heartbeat().count(), 2);
}

TEST(HostMonitor, LargeJob_ComparesItsClocksLessOften) {
  HostMonitor monitor = welcomed(2'500);  // every 10 s
  HostMonitor::Time now = kStart + 1s;    // the first one has a random phase
  ASSERT_TRUE(monitor.take_heartbeat(now)->heartbeat().sample());
  for (int i = 1; i < 10; ++i) {
    EXPECT_FALSE(monitor.take_heartbeat(now + i * 1s)->heartbeat().sample());
  }
  EXPECT_TRUE(monitor.take_heartbeat(now + 10s)->heartbeat().sample());
}

TEST(HostMonitor, SilentHost_IsNotAlive) {
  HostMonitor monitor = welcomed(2);
  HostMonitor::Time now = kStart;
  while (now < kStart + 2s) EXPECT_TRUE(monitor.is_alive(now += 1s, true));
  bool alive = true;
  for (int i = 0; i < 4 && alive; ++i) alive = monitor.is_alive(now += 1s, true);
  EXPECT_FALSE(alive);
  monitor.excuse_silence(now);
  EXPECT_TRUE(monitor.is_alive(now, true));
}

TEST(HostMonitor, LongestSilence_CountsWhileTheJobRuns) {
  HostMonitor monitor = welcomed(2);
  monitor.received(kStart + 2s, false);
  EXPECT_EQ(monitor.longest_silence(), 0s);
  monitor.received(kStart + 3s, true);
  EXPECT_EQ(monitor.longest_silence(), 1s);
}

TEST(HostMonitor, TimesOfMessages_AreTheHostsIfItsClockIsKnown) {
  HostMonitor monitor = welcomed(2);
  wire::StopRequest before, after;
  for (wire::StopRequest* request : {&before, &after}) request->set_at_ns(steady_ns(kStart));
  monitor.use_host_clock(&before);
  EXPECT_EQ(before.at_ns(), 0);
  wire::Heartbeat echo;
  echo.set_sent_ns(steady_ns(kStart));
  echo.set_host_ns(steady_ns(kStart) + 5'000'000);
  monitor.on_echo(echo, kStart);
  monitor.use_host_clock(&after);
  EXPECT_EQ(after.at_ns(), steady_ns(kStart) + 5'000'000);
  monitor.on_host_changed();
  EXPECT_FALSE(monitor.host_clock(steady_ns(kStart)));
}

}  // namespace
}  // namespace fleet
