#include "transport/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/thread.h"
#include "transport/loop_descriptor.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::hours;
using std::chrono::minutes;

constexpr hours kNever{1};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("cannot create a pipe");
    reading = UniqueFd(ends[0]);
    writing = UniqueFd(ends[1]);
  }
  void write(std::string_view bytes) const {
    EXPECT_EQ(::write(writing.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  UniqueFd reading, writing;
};

// Runs the loop until `done`, but not forever.
template <typename Done>
bool run_until(EventLoop& loop, Done done) {
  for (int i = 0; i < 600 && !done(); ++i) loop.run_one_for(std::chrono::milliseconds(100));
  return done();
}

TEST(EventLoop, PostOfAnotherThread_RunsInTheLoop) {
  EventLoop loop;
  bool here = false;
  EXPECT_FALSE(loop.runs_here());
  Thread other("other", [&] {
    loop.post([&] {
      here = loop.runs_here();
      loop.stop();
    });
  });
  EXPECT_GE(loop.run_until_stopped(), 1u);
  EXPECT_TRUE(here);
}

TEST(EventLoop, Posts_RunInOrder) {
  EventLoop loop;
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) loop.post([&ran, i] { ran.push_back(i); });
  EXPECT_TRUE(ran.empty());
  EXPECT_EQ(loop.run(), 3u);
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
}

TEST(EventLoop, Stopped_RunsAgainAfterRestart) {
  EventLoop loop;
  int ran = 0;
  loop.stop();
  loop.post([&] { ++ran; });
  EXPECT_EQ(loop.run_until_stopped(), 0u);
  loop.restart();
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(ran, 1);
}

TEST(EventLoop, HandlerThrows_LeavesRun) {
  EventLoop loop;
  loop.post([] { throw std::runtime_error("thrown"); });
  EXPECT_THROW(loop.run(), std::runtime_error);
}

TEST(EventLoop, Destroyed_DestroysItsHandlersWithoutCalls) {
  const auto held = std::make_shared<int>(0);
  {
    EventLoop loop;
    loop.post([held] { ++*held; });
    const auto timer = std::make_shared<LoopTimer>(loop);
    timer->after(kNever, [held, timer] { ++*held; });
    const auto end = std::make_shared<LoopDescriptor>(loop, std::move(Pipe().reading));
    end->wait(LoopDescriptor::Event::kReadable, [held, end](std::error_code) { ++*held; });
    EXPECT_EQ(held.use_count(), 4);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(LoopGate, WhatIsPosted_RunsInTheLoopWhileThatExists) {
  int ran = 0;
  std::shared_ptr<LoopGate> gate;
  {
    EventLoop loop;
    gate = loop.gate();
    gate->post([&] { ++ran; });
    EXPECT_EQ(ran, 0);
    loop.run();
    EXPECT_EQ(ran, 1);
    gate->post([&] { ++ran; });  // the loop ends before it runs this
  }
  gate->post([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

TEST(LoopTimer, SeveralTimers_FireInTheOrderOfTheirTimes) {
  EventLoop loop;
  std::vector<int> fired;
  const auto now = Clock::now();
  LoopTimer second(loop), first(loop), third(loop);
  second.at(now - minutes(2), [&] { fired.push_back(2); });
  first.at(now - minutes(3), [&] { fired.push_back(1); });
  third.after(std::chrono::milliseconds(20), [&] { fired.push_back(3); });
  loop.run();
  EXPECT_EQ(fired, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(Clock::now(), now + std::chrono::milliseconds(20));
}

TEST(LoopTimer, Cancelled_NeverFires) {
  EventLoop loop;
  bool fired = false;
  LoopTimer timer(loop);
  timer.after(kNever, [&] { fired = true; });
  timer.cancel();
  loop.run();  // nothing is awaited
  EXPECT_FALSE(fired);
}

// Asio would call the handler with a success: its time has come, and the call is queued.
TEST(LoopTimer, CancelledAfterItsTime_NeverFires) {
  EventLoop loop;
  int fired = 0;
  LoopTimer one(loop), other(loop);
  one.at(Clock::now() - minutes(1), [&] {
    ++fired;
    other.cancel();
  });
  other.at(Clock::now() - minutes(1), [&] {
    ++fired;
    one.cancel();
  });
  loop.run();
  EXPECT_EQ(fired, 1);
}

TEST(LoopTimer, ArmedAgain_OnlyTheLastHandlerFires) {
  EventLoop loop;
  std::vector<int> fired;
  LoopTimer timer(loop);
  timer.at(Clock::now() - minutes(1), [&] { fired.push_back(1); });
  timer.after(kNever, [&] { fired.push_back(2); });
  timer.at(Clock::now(), [&] { fired.push_back(3); });
  loop.run();
  EXPECT_EQ(fired, (std::vector<int>{3}));
}

TEST(LoopTimer, ArmedInItsHandler_FiresAgain) {
  EventLoop loop;
  int fired = 0;
  LoopTimer timer(loop);
  std::function<void()> fire = [&] {
    if (++fired < 3) timer.after(std::chrono::milliseconds(0), fire);
  };
  timer.at(Clock::now(), fire);
  loop.run();
  EXPECT_EQ(fired, 3);
}

TEST(LoopTimer, DestroyedWhileItWaits_NeverFires) {
  EventLoop loop;
  const auto held = std::make_shared<int>(0);
  auto timer = std::make_unique<LoopTimer>(loop);
  timer->at(Clock::now() - minutes(1), [held] { ++*held; });
  timer.reset();
  loop.run();
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(held.use_count(), 1);  // its handler is gone too
}

TEST(LoopTimer, DestroyedByItsHandler_EndsWell) {
  EventLoop loop;
  std::optional<LoopTimer> timer(std::in_place, loop);
  bool ran = false;
  timer->at(Clock::now(), [&timer, &ran, after = std::make_unique<int>(1).release()] {
    timer.reset();
    ran = *after == 1;  // the captures are still there
    delete after;
  });
  loop.run();
  EXPECT_TRUE(ran);
}

TEST(LoopTimer, OwnedByItsHandler_FiresAndGoes) {
  EventLoop loop;
  bool fired = false;
  std::weak_ptr<LoopTimer> weak;
  {
    const auto timer = std::make_shared<LoopTimer>(loop);
    weak = timer;
    timer->after(std::chrono::milliseconds(1), [timer, &fired] { fired = true; });
  }
  loop.run();
  EXPECT_TRUE(fired);
  EXPECT_TRUE(weak.expired());
}

TEST(LoopDescriptor, BytesArrive_IsReadable) {
  EventLoop loop;
  Pipe pipe;
  LoopDescriptor descriptor(loop, std::move(pipe.reading));
  int readable = 0;
  descriptor.wait(LoopDescriptor::Event::kReadable, [&](std::error_code error) {
    EXPECT_FALSE(error);
    ++readable;
  });
  loop.poll();
  EXPECT_EQ(readable, 0);
  pipe.write("x");
  EXPECT_TRUE(run_until(loop, [&] { return readable > 0; }));
  loop.restart();
  loop.poll();
  EXPECT_EQ(readable, 1);  // once per wait
}

TEST(LoopDescriptor, BothDirections_AreAwaitedAtOnce) {
  EventLoop loop;
  Pipe pipe;
  LoopDescriptor writing(loop, std::move(pipe.writing)), reading(loop, std::move(pipe.reading));
  bool writable = false, ended = false;
  reading.wait(LoopDescriptor::Event::kReadable, [&](std::error_code) { ended = true; });
  writing.wait(LoopDescriptor::Event::kWritable, [&](std::error_code error) {
    writable = !error;
    writing.close();  // which the other end notices
  });
  EXPECT_TRUE(run_until(loop, [&] { return ended; }));
  EXPECT_TRUE(writable);
  EXPECT_FALSE(writing.is_open());
  EXPECT_EQ(writing.get(), -1);
}

TEST(LoopDescriptor, ReadSome_GetsTheBytesAndThenTheEnd) {
  EventLoop loop;
  Pipe pipe;
  LoopDescriptor descriptor(loop, std::move(pipe.reading));
  char buffer[16];
  size_t read = 0;
  descriptor.read_some(buffer, [&](std::error_code error, size_t size) {
    EXPECT_FALSE(error);
    read = size;
  });
  pipe.write("abc");
  ASSERT_TRUE(run_until(loop, [&] { return read > 0; }));
  EXPECT_EQ(std::string_view(buffer, read), "abc");
  pipe.writing.reset();
  bool ended = false;
  descriptor.read_some(buffer, [&](std::error_code error, size_t) { ended = bool(error); });
  loop.restart();
  EXPECT_TRUE(run_until(loop, [&] { return ended; }));
}

TEST(LoopDescriptor, ClosedWhileItWaits_CallsNothing) {
  EventLoop loop;
  Pipe pipe;
  const auto held = std::make_shared<int>(0);
  pipe.write("x");
  LoopDescriptor descriptor(loop, std::move(pipe.reading));
  descriptor.wait(LoopDescriptor::Event::kReadable, [held](std::error_code) { ++*held; });
  descriptor.close();
  loop.run();
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(LoopDescriptor, FileThatCannotBeAwaited_IsAnError) {
  EventLoop loop;
  LoopDescriptor descriptor(loop, UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  bool failed = false;
  descriptor.wait(LoopDescriptor::Event::kReadable,
                  [&](std::error_code error) { failed = bool(error); });
  loop.run();
  EXPECT_TRUE(failed);
}

TEST(LoopDescriptor, BadDescriptor_IsRefused) {
  EventLoop loop;
  LoopDescriptor descriptor(loop);
  EXPECT_THROW(descriptor.assign(UniqueFd()), Error);
  EXPECT_FALSE(descriptor.is_open());
}

TEST(LoopSignals, Signals_ArriveOneByOne) {
  EventLoop loop;
  std::vector<int> received;
  LoopSignals signals(loop, {SIGUSR1});
  signals.add(SIGUSR2);
  ::raise(SIGUSR1);  // before on_signal()
  signals.on_signal([&](int signal) { received.push_back(signal); });
  EXPECT_TRUE(run_until(loop, [&] { return received.size() == 1; }));
  ::raise(SIGUSR2);
  EXPECT_TRUE(run_until(loop, [&] { return received.size() == 2; }));
  EXPECT_EQ(received, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST(LoopSignals, Destroyed_RestoresTheDefault) {
  EventLoop loop;
  std::optional<LoopSignals> signals(std::in_place, loop);
  signals->add(SIGUSR1);
  signals->on_signal([](int) {});
  signals.reset();
  struct sigaction action;
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &action), 0);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
  loop.run();  // nothing is awaited
}

TEST(LoopSignals, SignalThatCannotBeCaught_IsRefused) {
  EventLoop loop;
  LoopSignals signals(loop);
  EXPECT_THROW(signals.add(SIGKILL), Error);
}

}  // namespace
}  // namespace fleet
