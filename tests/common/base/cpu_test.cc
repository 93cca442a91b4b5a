#include "base/cpu.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

namespace fleet {
namespace {

FLEET_SIMD void sum(const int* x, const int* y, int* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

TEST(Cpu, FunctionOfSeveralInstructionSets_RunsHere) {
  int x[37], y[37], out[37];
  for (int i = 0; i < 37; ++i) x[i] = i, y[i] = 100 * i;
  sum(x, y, out, 37);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(out[i], 101 * i);
}

TEST(Cpu, SpinningThread_SeesWhatWasWrittenBeforeTheFlag) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> ready{false};
    int value = 0;
    std::thread writer([&] {
      value = round + 1;
      ready.store(true, std::memory_order_release);
    });
    while (!ready.load(std::memory_order_acquire)) spin_pause();
    EXPECT_EQ(value, round + 1);
    writer.join();
  }
}

// Parsers compare characters with numbers; the build sets -fsigned-char where it is not the
// default.
TEST(Cpu, Char_IsSigned) { EXPECT_TRUE(std::numeric_limits<char>::is_signed); }

// -ffp-contract=off where fused multiply-adds belong to the baseline: (1 + e)(1 - e) - 1 is 0 if
// the product is rounded and -e^2 if it is fused.
TEST(Cpu, MultiplyAndAdd_AreNotFused) {
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30;
  const double x = a, y = b;
  EXPECT_EQ(x * y - 1, 0.0);
}

}  // namespace
}  // namespace fleet
