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
