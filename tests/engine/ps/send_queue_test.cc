#include "ps/send_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>

#include "base/thread.h"
#include "tensor/float16.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::milliseconds kNoPatience{0};
constexpr std::chrono::hours kPatience{1};

PendingPush pending_push(int64_t step) { return {.head = {}, .step = step, .servers = {}}; }

std::vector<int64_t> steps_of_pushes(const std::vector<PendingPush>& pushes) {
  std::vector<int64_t> steps;
  for (const PendingPush& push : pushes) steps.push_back(push.step);
  return steps;
}

TEST(SendQueue, FullQueue_MakesThePusherWait) {
  SendQueue queue(2);
  std::atomic<int> pushed = 0;
  Thread trainer("trainer", [&] {
    for (int step = 0; step < 5; ++step) {
      queue.push(pending_push(step));
      pushed = step + 1;
    }
  });
  while (pushed < 2) std::this_thread::yield();
  EXPECT_THAT(steps_of_pushes(queue.take(10, kNoPatience, kPatience)), ElementsAre(0, 1));
  while (pushed < 4) std::this_thread::yield();
  EXPECT_THAT(steps_of_pushes(queue.take(10, kNoPatience, kPatience)), ElementsAre(2, 3));
  EXPECT_THAT(steps_of_pushes(queue.take(10, kNoPatience, kPatience)), ElementsAre(4));
  trainer.join();
}

TEST(SendQueue, Take_WaitsForAsManyAsAreToBeMerged) {
  SendQueue queue(1);
  Thread trainer("trainer", [&] {
    for (int step = 0; step < 4; ++step) queue.push(pending_push(step));
  });
  EXPECT_THAT(steps_of_pushes(queue.take(3, kPatience, kPatience)), ElementsAre(0, 1, 2));
  EXPECT_THAT(steps_of_pushes(queue.take(3, kNoPatience, kPatience)), ElementsAre(3));
  trainer.join();
}

TEST(SendQueue, TrainerInAHurry_EndsTheWaitForMore) {
  SendQueue queue(4);
  queue.push(pending_push(0));
  queue.hurry(true);
  EXPECT_THAT(steps_of_pushes(queue.take(3, kPatience, kPatience)), ElementsAre(0));
  EXPECT_THAT(queue.take(3, kPatience, kPatience), IsEmpty());
}

TEST(SendQueue, Hold_ReturnsWhenEverythingIsSent) {
  SendQueue queue(4);
  std::vector<int64_t> sent;
  Thread sender("sender", [&] {
    while (!queue.ended()) {
      for (const int64_t step : steps_of_pushes(queue.take(2, kPatience, kNoPatience)))
        sent.push_back(step);
    }
  });
  for (int step = 0; step < 3; ++step) queue.push(pending_push(step));
  queue.hold();
  EXPECT_THAT(sent, ElementsAre(0, 1, 2));
  EXPECT_TRUE(queue.empty());
  queue.release();
  queue.end();
  sender.join();
}

TEST(SendQueue, Hold_WaitsForPushesThatWaitForMore) {
  SendQueue queue(4);
  std::vector<int64_t> sent;
  Thread sender("sender", [&] {
    while (!queue.ended()) {
      for (const int64_t step : steps_of_pushes(queue.take(2, kPatience, kPatience)))
        sent.push_back(step);
    }
  });
  queue.push(pending_push(0));
  while (!queue.empty()) std::this_thread::yield();
  queue.hold();
  EXPECT_THAT(sent, ElementsAre(0));
  queue.release();
  queue.end();
  sender.join();
}

TEST(SendQueue, End_LetsAllReturn) {
  SendQueue queue(1);
  queue.push(pending_push(0));
  Thread trainer("trainer", [&] { queue.push(pending_push(1)); });
  queue.end();
  trainer.join();
  EXPECT_THAT(queue.take(3, kPatience, kPatience), IsEmpty());
  queue.hold();
}

// --- Sums -------------------------------------------------------------------------------------

template <typename T>
void append_values(const std::vector<T>& values, size_t padded, std::vector<std::byte>* bytes) {
  const size_t at = bytes->size();
  bytes->resize(at + padded);
  std::memcpy(bytes->data() + at, values.data(), values.size() * sizeof(T));
}

TEST(Merge, Gradients_AreAddedUpFromLeftToRight) {
  const std::vector<std::vector<BlockSegment>> segments = {
      {{.dtype = DType::kFloat32, .bytes = 12}, {.dtype = DType::kBFloat16, .bytes = 4}},
      {{.dtype = DType::kFloat32, .bytes = 4}}};
  std::vector<PendingPush> pushes;
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    const float value = i == 1 ? 1e8f : 1.5f + static_cast<float>(i);
    sum = i == 0 ? value : sum + value;
    PendingPush& push = pushes.emplace_back(pending_push(4 + i));
    push.head = {.learning_rate = 0.5f * static_cast<float>(i + 1)};
    push.servers.resize(2);
    append_values<float>({value, 1, -1}, 16, &push.servers[0]);
    append_values<BFloat16>({BFloat16(1.f), BFloat16(2.f)}, 8, &push.servers[0]);
    append_values<float>({2}, 8, &push.servers[1]);
  }
  const PendingPush merged = merge(std::move(pushes), segments);
  const auto* wide = reinterpret_cast<const float*>(merged.servers[0].data());
  const auto* narrow = reinterpret_cast<const BFloat16*>(merged.servers[0].data() + 16);
  EXPECT_THAT(std::vector(wide, wide + 3), ElementsAre(sum, 3, -3));
  EXPECT_EQ(static_cast<float>(narrow[0]), 3);
  EXPECT_EQ(static_cast<float>(narrow[1]), 6);
  EXPECT_EQ(*reinterpret_cast<const float*>(merged.servers[1].data()), 6);
  EXPECT_EQ(merged.step, 6);
  EXPECT_EQ(merged.head.learning_rate, 1.5f);
  EXPECT_EQ(merged.head.bad_gradient, 0u);
}

// A server leaves a bad push out, and would leave out the good gradients in it.
TEST(Merge, BadGradients_TakeNoGoodOnesAlong) {
  const std::vector<std::vector<BlockSegment>> segments = {
      {{.dtype = DType::kFloat32, .bytes = 8}}};
  const auto push_of = [](int64_t step, float value, uint32_t bad) {
    PendingPush push = pending_push(step);
    push.head = {.learning_rate = static_cast<float>(step), .bad_gradient = bad};
    push.servers.resize(1);
    append_values<float>({value, value}, 8, &push.servers[0]);
    push.rows = {{{.ids = {7}, .shows = {1}, .clicks = {0}, .values = {value}}}};
    return push;
  };
  const PendingPush merged =
      merge({push_of(1, 2, 0), push_of(2, 5, 0), push_of(3, 9, 4)}, segments);
  EXPECT_EQ(*reinterpret_cast<const float*>(merged.servers[0].data()), 7);
  EXPECT_THAT(merged.rows[0][0].values, ElementsAre(7));
  EXPECT_EQ(merged.head.bad_gradient, 0u);
  EXPECT_EQ(merged.head.learning_rate, 3);
  EXPECT_EQ(merged.step, 3);
  const PendingPush bad = merge({push_of(1, 2, 6), push_of(2, 5, 4)}, segments);
  EXPECT_EQ(bad.head.bad_gradient, 6u);
  EXPECT_EQ(bad.step, 2);
}

}  // namespace
}  // namespace fleet::ps
