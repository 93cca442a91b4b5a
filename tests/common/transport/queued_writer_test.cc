#include "transport/queued_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fleet {
namespace {

using testing::ElementsAre;

struct Message {
  std::string text;
  size_t ByteSizeLong() const { return text.size(); }
};

// Takes writes as gRPC does: one at a time, by pointer.
struct FakeReactor {
  virtual ~FakeReactor() = default;
  virtual void OnWriteDone(bool ok) = 0;
  void StartWrite(const Message* message) {
    ASSERT_EQ(pending, nullptr);
    pending = message;
  }
  const Message* pending = nullptr;
};

struct Writer : QueuedWriter<FakeReactor, Message> {
  using QueuedWriter::QueuedWriter;
  using QueuedWriter::stop_writing;
  void finish_write(bool ok = true) {
    ASSERT_NE(pending, nullptr);
    if (ok) written.push_back(pending->text);
    pending = nullptr;
    OnWriteDone(ok);
  }
  void on_last_written() override { ++ends; }
  void on_drained() override { ++drained; }
  void on_overflow() override { ++overflows; }
  std::vector<std::string> written;
  int ends = 0, drained = 0, overflows = 0;
};

TEST(QueuedWriter, Messages_AreWrittenOneAtATimeInOrder) {
  Writer writer;
  for (const char* text : {"a", "bc", "d"}) writer.write({text});
  EXPECT_EQ(writer.queued_bytes(), 4u);
  writer.finish_write();
  EXPECT_EQ(writer.queued_bytes(), 3u);
  writer.finish_write();
  EXPECT_EQ(writer.drained, 0);
  writer.finish_write();
  EXPECT_EQ(writer.drained, 1);
  EXPECT_EQ(writer.queued_bytes(), 0u);
  EXPECT_EQ(writer.pending, nullptr);
  EXPECT_THAT(writer.written, ElementsAre("a", "bc", "d"));
  EXPECT_EQ(writer.ends, 0);
}

TEST(QueuedWriter, Close_EndsOnceAfterQueuedMessages) {
  Writer writer;
  writer.write({"a"});
  writer.write({"b"});
  writer.close();
  writer.write({"c"});  // too late
  writer.finish_write();
  EXPECT_EQ(writer.ends, 0);
  writer.finish_write();
  writer.close();
  EXPECT_EQ(writer.ends, 1);
  EXPECT_THAT(writer.written, ElementsAre("a", "b"));
}

TEST(QueuedWriter, FullQueue_IsDroppedAndCancelled) {
  Writer writer(1000);
  writer.write({"a"});
  writer.write({std::string(1000, 'b')});
  EXPECT_EQ(writer.overflows, 0);
  writer.write({"c"});
  EXPECT_EQ(writer.overflows, 1);
  EXPECT_EQ(writer.queued_bytes(), 1u);  // that of the write in progress
  writer.write({"d"});                   // closed: dropped like any other
  EXPECT_EQ(writer.overflows, 1);
  writer.finish_write();
  EXPECT_EQ(writer.ends, 1);
  EXPECT_THAT(writer.written, ElementsAre("a"));
}

TEST(BoundedQueue, EmptyItems_CountToo) {
  BoundedQueue<int> queue(100'000);
  int pushed = 0;
  while (pushed < 100'000 && queue.push(pushed, 0)) ++pushed;
  EXPECT_GT(pushed, 100);
  EXPECT_LT(pushed, 10'000);
  EXPECT_EQ(queue.bytes(), 0u);
  queue.pop();
  EXPECT_EQ(queue.front(), 1);
  EXPECT_TRUE(queue.push(-1, 0));
  queue.drop_after(0);
  EXPECT_TRUE(queue.empty());
}

TEST(QueuedWriter, FailedWrite_DropsTheRest) {
  Writer writer;
  writer.write({"a"});
  writer.write({"b"});
  writer.finish_write(false);
  EXPECT_EQ(writer.pending, nullptr);
  EXPECT_EQ(writer.queued_bytes(), 0u);
  writer.close();
  EXPECT_EQ(writer.ends, 1);
}

TEST(QueuedWriter, StreamIsOver_NothingIsStarted) {
  Writer writer;
  writer.write({"a"});
  writer.write({"b"});
  writer.stop_writing();
  writer.finish_write();
  writer.close();
  writer.write({"c"});
  EXPECT_EQ(writer.pending, nullptr);
  EXPECT_EQ(writer.ends, 0);
}

}  // namespace
}  // namespace fleet
