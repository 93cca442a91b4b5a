#include <gtest/gtest.h>

#include "node/guardian.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr HeartbeatTimes kQuick{20ms, 200ms};

// Whether the monitor stopped the loop by itself, and its pings until then.
struct Monitored {
  explicit Monitored(bool answers, int stop_after = 0) {
    EventLoop loop;
    GuardianMonitor monitor(
        loop,
        [&] {
          ++pings;
          if (answers) monitor.on_pong();
          if (pings == stop_after) monitor.stop();
        },
        [&] { ++hung; }, kQuick);
    monitor.start(1h);
    monitor.start(0ms);  // earlier
    monitor.start(1h);   // no longer of interest
    loop.run();          // until it waits for nothing
  }
  int pings = 0, hung = 0;
};

TEST(GuardianMonitor, NoAnswer_HangsOnce) {
  const Monitored guardian(false);
  EXPECT_EQ(guardian.hung, 1);
  EXPECT_GE(guardian.pings, 1);
}

TEST(GuardianMonitor, Answers_DoesNotHangHoweverLongItTakes) {
  const Monitored guardian(true,
                           2 * static_cast<int>(kQuick.max_silence / kQuick.heartbeat_interval));
  EXPECT_EQ(guardian.hung, 0);
}

TEST(GuardianMonitor, Stopped_SaysNothing) {
  const Monitored guardian(false, 1);
  EXPECT_EQ(guardian.hung, 0);
  EXPECT_EQ(guardian.pings, 1);
}

}  // namespace
}  // namespace fleet
