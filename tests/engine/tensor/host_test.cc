#include "tensor/host.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

TEST(HostStream, Tasks_RunInOrder) {
  HostStream stream("test");
  std::vector<int> order;
  for (int i = 0; i < 3000; ++i) stream.enqueue([&order, i] { order.push_back(i); });
  stream.synchronize();
  ASSERT_EQ(order.size(), 3000u);
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(order[i], i);
}

TEST(HostStream, WaitOnEventOfAnotherStream_OrdersWork) {
  HostStream first("first"), second("second");
  HostEvent go, done;
  std::mutex gate;
  int value = 0;
  gate.lock();
  first.enqueue([&] {
    std::lock_guard lock(gate);
    value = 1;
  });
  first.record(done);
  second.wait(done);
  second.enqueue([&] { value += 10; });
  gate.unlock();
  second.synchronize();
  EXPECT_EQ(value, 11);
}

TEST(HostStream, TaskThrows_LaterAreSkippedAndEventsRethrow) {
  HostStream stream("test"), inline_stream("");
  HostEvent event;
  bool ran = false;
  stream.enqueue([] { throw Error(ErrorCode::kPeerLost, "rank 1 is gone"); });
  stream.enqueue([&ran] { ran = true; });
  stream.record(event);
  EXPECT_THROW(event.synchronize(), Error);
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_THROW(inline_stream.wait(event), Error);
  EXPECT_FALSE(ran);
}

// Two streams that wait for each other in turns can only end if they run at the same time.
TEST(HostDevice, StreamsThatRunTogether_WaitForEachOther) {
  HostDevice device;
  const auto a = device.make_stream(""), b = device.make_stream("");
  const std::vector<Stream*> both = {a.get(), b.get()};
  std::vector<HostEvent> events(2000);
  int turns = 0;
  for (int round = 0; round < 3; ++round) {
    device.run_together(both, [&] {
      for (size_t i = 0; i < events.size(); ++i) {
        Stream& stream = *both[i % 2];
        if (i > 0) stream.wait(events[i - 1]);
        HostStream::of(stream).enqueue([&turns] { ++turns; });
        stream.record(events[i]);
      }
      EXPECT_EQ(turns, static_cast<int>(events.size()) * round);  // nothing has run yet
    });
    EXPECT_EQ(turns, static_cast<int>(events.size()) * (round + 1));
  }
  int after = 0;
  HostStream::of(*a).enqueue([&after] { after = 1; });
  EXPECT_EQ(after, 1);  // at once again
}

// The other stream must not wait forever for work of the failed one.
TEST(HostDevice, FailureOfStreamsThatRunTogether_IsRethrownAndEndsTheOthers) {
  HostDevice device;
  const auto a = device.make_stream(""), b = device.make_stream("");
  const std::vector<Stream*> both = {a.get(), b.get()};
  bool skipped = true;
  const auto fail = [&](Stream& failing, Stream& waiting) {
    HostEvent event;
    device.run_together(both, [&] {
      HostStream::of(failing).enqueue([] { throw Error(ErrorCode::kUsage, "no"); });
      failing.record(event);
      waiting.wait(event);
      HostStream::of(waiting).enqueue([&skipped] { skipped = false; });
    });
  };
  EXPECT_THROW(fail(*a, *b), Error);
  EXPECT_THROW(fail(*b, *a), Error);
  EXPECT_TRUE(skipped);
  int ran = 0;
  device.run_together(both, [&] { HostStream::of(*b).enqueue([&ran] { ran = 1; }); });
  EXPECT_EQ(ran, 1);
}

TEST(HostDevice, FailureWhileWorkIsIssued_StillRunsWhatWasIssuedBefore) {
  HostDevice device;
  const auto a = device.make_stream("");
  const std::vector<Stream*> one = {a.get()};
  int ran = 0;
  EXPECT_THROW(device.run_together(one,
                                   [&] {
                                     HostStream::of(*a).enqueue([&ran] { ran = 1; });
                                     throw Error(ErrorCode::kUsage, "no");
                                   }),
               Error);
  EXPECT_EQ(ran, 1);
}

TEST(HostDevice, Allocate_IsAlignedAndZeroed) {
  HostDevice device;
  for (size_t bytes : {size_t{1}, size_t{100}, size_t{5} << 20}) {
    const Buffer buffer = device.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(static_cast<char*>(buffer.data())[bytes - 1], 0);
  }
}

}  // namespace
}  // namespace fleet
