#include "data/reader_meter.h"

#include <gtest/gtest.h>

namespace fleet::data {
namespace {

using namespace std::chrono_literals;

const ReaderTuner::Options kOptions = {{1, 2}, {8, 8}};

// Batches every 100 ms, for which the consumer waits so long, until the size changes.
std::optional<ReaderMeter::Change> until_change(ReaderMeter& meter, ReaderMeter::Time& now,
                                                double waited) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto change = meter.on_batch(waited, now += 100ms)) return change;
  }
  return std::nullopt;
}

TEST(ReaderMeter, ConsumerThatWaits_GetsALargerReader) {
  ReaderMeter::Time now{};
  ReaderMeter meter(kOptions, now);
  const auto change = until_change(meter, now, 0.05);
  ASSERT_TRUE(change);
  EXPECT_NE(change->size, kOptions.first);
  EXPECT_EQ(change->size, meter.size());
  EXPECT_NEAR(change->waited, 0.5, 1e-6);
}

TEST(ReaderMeter, ConsumerThatNeverWaits_ChangesNothing) {
  ReaderMeter::Time now{};
  ReaderMeter meter(kOptions, now);
  EXPECT_FALSE(until_change(meter, now, 0));
  EXPECT_EQ(meter.size(), kOptions.first);
}

// An evaluation, for example: with it the consumer would have waited for a small part of the time.
TEST(ReaderMeter, SkippedTime_DoesNotCount) {
  ReaderMeter::Time now{};
  ReaderMeter meter(kOptions, now);
  meter.skip_to(now += 1h);
  const auto change = until_change(meter, now, 0.05);
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->waited, 0.5, 1e-6);
}

}  // namespace
}  // namespace fleet::data
