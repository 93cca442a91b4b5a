#include "node/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "diagnosis/gpu_throttling.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

const std::string kFake = program_folder() + "/libnode_fake_nvml.so";

// Waits for the first values. The bound is against hanging.
std::map<int, wire::GpuUsage> values_of(const GpuMonitor& monitor) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (monitor.latest().empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  return monitor.latest();
}

TEST(GpuMonitor, Gpu_IsReadWithWhatItReports) {
  const GpuMonitor monitor({1, 9}, 1ms, kFake);
  const auto values = values_of(monitor);
  ASSERT_EQ(values.size(), 1u);  // there is no GPU 9
  const wire::GpuUsage& gpu = values.at(1);
  EXPECT_EQ(gpu.id(), 1);
  EXPECT_EQ(gpu.utilization(), 97);
  EXPECT_EQ(gpu.memory_used(), int64_t{10} << 30);
  EXPECT_EQ(gpu.memory_total(), int64_t{80} << 30);
  EXPECT_EQ(gpu.clock_mhz(), 1410);
  EXPECT_EQ(gpu.power_watts(), 400);
  EXPECT_FALSE(gpu.has_celsius());  // this driver cannot tell
  EXPECT_EQ(throttle_text(gpu.throttled()), "power+heat");
}

TEST(GpuMonitor, NoLibrary_ReportsNothing) {
  const GpuMonitor monitor({0}, 1ms, "/nowhere/libnvidia-ml.so.1");
  std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(monitor.latest().empty());
}

TEST(GpuMonitor, DriverThatHangs_DelaysTheEndByASecondAtMost) {
  const auto begin = std::chrono::steady_clock::now();
  { const GpuMonitor monitor({7}, 1ms, kFake); }  // nvmlDeviceGetHandleByIndex_v2(7) never returns
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
}

TEST(GpuName, Device_IsAPositionAmongTheVisible) {
  EXPECT_EQ(gpu_name(2, ""), "2");
  EXPECT_EQ(gpu_name(1, "4,6"), "6");
  EXPECT_EQ(gpu_name(0, "GPU-1234"), "GPU-1234");
}

TEST(ThrottleText, ReasonsThatDoNotSlow_AreNone) {
  EXPECT_EQ(throttle_text(0), "");
  EXPECT_EQ(throttle_text(0x1 | 0x2), "");  // idle, clocks of an application
  EXPECT_EQ(throttle_text(0x80), "brake");
  EXPECT_EQ(throttle_text(0x8), "hardware");
}

}  // namespace
}  // namespace fleet
