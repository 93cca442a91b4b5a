#include "train/device_prefetcher.h"

#include <gtest/gtest.h>

#include "tests/engine/train/async_copy_device.h"

namespace fleet {
namespace {

// y = x + r, with r of one element; x is large enough to be copied from where it lies.
struct Net {
  static constexpr int64_t kLarge = (1 << 18) + 64;
  Program program;
  VarId x, small, x_out, small_out;
  Net() {
    const SectionId section = program.add_section("forward", {});
    x = program.feed("x", DType::kFloat32, {kLarge});
    small = program.feed("small", DType::kFloat32, {3});
    x_out = program.emit(section, "scale", {x}, {{"scale", 2.0}})[0];
    small_out = program.emit(section, "scale", {small}, {{"scale", 3.0}})[0];
  }
};

// The net's results of eight steps. Host memory is reused as soon as that is allowed.
std::vector<std::vector<float>> run(Device& device) {
  Net net;
  Executor executor(plan_program(net.program, {net.x_out, net.small_out}), device, nullptr);
  DevicePrefetcher prefetcher(executor, device, {net.x, net.small});
  std::vector<float> x(Net::kLarge), small(3);
  std::vector<std::vector<float>> results;
  for (int step = 0; step < 8; ++step) {
    for (int64_t i = 0; i < Net::kLarge; ++i) x[i] = static_cast<float>(step * 1000 + i % 100);
    small = {1.f * step, 2.f * step, 3.f * step};
    prefetcher.feed({{net.x, x}, {net.small, small}});
    small = {-1, -1, -1};
    executor.run({.step = step});
    prefetcher.release();
    x.assign(Net::kLarge, -1);
    if (step % 3 != 2) continue;  // in between nothing waits for the step
    results.push_back(executor.values<float>(net.x_out));
    results.push_back(executor.values<float>(net.small_out));
  }
  return results;
}

TEST(DevicePrefetcher, ConcurrentCopies_EqualDirectCopies) {
  HostDevice direct;
  AsyncCopyDevice overlapped;
  const auto want = run(direct);
  EXPECT_EQ(want[0][5], 2 * (2000.f + 5));
  EXPECT_EQ(want[1], (std::vector<float>{6, 12, 18}));
  EXPECT_EQ(run(overlapped), want);
}

TEST(DevicePrefetcher, AnotherOrder_IsABug) {
  AsyncCopyDevice device;
  Net net;
  Executor executor(plan_program(net.program, {net.x_out, net.small_out}), device, nullptr);
  DevicePrefetcher prefetcher(executor, device, {net.x, net.small});
  const float values[3] = {};
  EXPECT_THROW(prefetcher.feed({{net.small, values}}), Error);
}

TEST(DevicePrefetcher, AnotherSize_IsABugThatNamesTheVariable) {
  HostDevice direct;
  AsyncCopyDevice overlapped;
  for (Device* device : {static_cast<Device*>(&direct), static_cast<Device*>(&overlapped)}) {
    Net net;
    Executor executor(plan_program(net.program, {net.x_out, net.small_out}), *device, nullptr);
    DevicePrefetcher prefetcher(executor, *device, {net.x, net.small});
    const std::vector<float> x(Net::kLarge), small(2);
    try {
      prefetcher.feed({{net.x, x}, {net.small, small}});
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_NE(std::string(error.what()).find("'small': 8 bytes"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace fleet
