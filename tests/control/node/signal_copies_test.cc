#include "node/signal_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using enum SignalCopies::Receiver;

constexpr SignalCopies::Time kStart = SignalCopies::Time() + 100s;
constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// pkill -f reaches the processes in the order of their pids, which is any.
TEST(SignalCopies, OneSignalToEachProcess_IsOneRequestInEveryOrder) {
  for (const int signal : kSignals) {
    std::array order = {kLauncher, kGuardian, kWatchdog};
    do {
      for (const auto gap : {0ms, 1ms, 499ms}) {
        SignalCopies copies;
        int requests = 0;
        for (size_t i = 0; i < order.size(); ++i) {
          requests += copies.is_request(signal, order[i], kStart + static_cast<int>(i) * gap);
        }
        EXPECT_EQ(requests, 1) << signal << ", " << gap.count() << " ms apart";
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(SignalCopies, SecondRound_IsASecondRequestInEveryOrder) {
  for (const int signal : kSignals) {
    std::array order = {kLauncher, kGuardian, kWatchdog};
    do {
      SignalCopies copies;
      int requests = 0;
      for (const auto begin : {kStart, kStart + SignalCopies::kWindow}) {
        for (const auto receiver : order) requests += copies.is_request(signal, receiver, begin);
      }
      EXPECT_EQ(requests, 2) << signal;
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(SignalCopies, SameSignalToTheLauncherWithinTheWindow_IsACopy) {
  SignalCopies copies;
  EXPECT_TRUE(copies.is_request(SIGTERM, kLauncher, kStart));
  EXPECT_FALSE(copies.is_request(SIGTERM, kLauncher, kStart + 999ms));
  EXPECT_TRUE(copies.is_request(SIGTERM, kLauncher, kStart + 1s));
}

// The window does not move: a signal every second is not one request for ever.
TEST(SignalCopies, SignalsThatGoOn_AreARequestOncePerWindow) {
  SignalCopies copies;
  int requests = 0;
  for (int i = 0; i < 30; ++i)
    requests += copies.is_request(SIGTERM, kLauncher, kStart + i * 100ms);
  EXPECT_EQ(requests, 3);
}

// Each Ctrl-C reaches the launcher and the guardian.
TEST(SignalCopies, CtrlCTwice_IsTwoRequests) {
  SignalCopies copies;
  EXPECT_TRUE(copies.is_request(SIGINT, kLauncher, kStart));
  EXPECT_FALSE(copies.is_request(SIGINT, kGuardian, kStart + 1ms));
  EXPECT_TRUE(copies.is_request(SIGINT, kLauncher, kStart + 150ms));
  EXPECT_FALSE(copies.is_request(SIGINT, kGuardian, kStart + 151ms));
}

// timeout -s INT signals its child, and then the child's process group.
TEST(SignalCopies, InterruptTwiceWithinAMoment_IsOneRequest) {
  SignalCopies copies;
  EXPECT_TRUE(copies.is_request(SIGINT, kLauncher, kStart));
  EXPECT_FALSE(copies.is_request(SIGINT, kLauncher, kStart + 9ms));
  EXPECT_FALSE(copies.is_request(SIGINT, kGuardian, kStart + 9ms));
}

TEST(SignalCopies, OtherSignal_IsARequestOfItsOwn) {
  SignalCopies copies;
  EXPECT_TRUE(copies.is_request(SIGTERM, kLauncher, kStart));
  EXPECT_TRUE(copies.is_request(SIGINT, kGuardian, kStart));
}

}  // namespace
}  // namespace fleet
