#include <gmock/gmock.h>

#include <future>
#include <memory>

#include "base/error.h"
#include "train/run_output.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A disk that does not answer until the test releases it.
class StuckDisk {
 public:
  void write() {
    begun_.set_value();
    wait_for(&answer_);
  }
  void wait_for_write() { wait_for(&begun_); }
  void answer() { answer_.set_value(); }

 private:
  static void wait_for(std::promise<void>* promise) {
    EXPECT_EQ(promise->get_future().wait_for(seconds(60)), std::future_status::ready);
  }

  std::promise<void> begun_, answer_;
};

TEST(OutputWriter, Tasks_RunInTheirOrder) {
  OutputWriter writer("out");
  auto order = std::make_shared<std::vector<int>>();
  for (int i = 0; i < 3; ++i) writer.write([=] { order->push_back(i); });
  ASSERT_TRUE(writer.wait_for(seconds(60)));
  EXPECT_THAT(*order, ElementsAre(0, 1, 2));
  EXPECT_EQ(writer.pending(), 0u);
  EXPECT_THAT(writer.take_messages(), IsEmpty());
}

TEST(OutputWriter, End_FinishesTheTasks) {
  int done = 0;
  {
    OutputWriter writer("out");
    for (int i = 0; i < 100; ++i) writer.write([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(OutputWriter, DiskThatDoesNotAnswer_IsNamedOnceAndNeverWaitedFor) {
  OutputWriter writer("out/lenet", milliseconds(1));
  StuckDisk disk;
  int later = 0;
  writer.write([&] { disk.write(); });
  writer.write([&] { ++later; });
  disk.wait_for_write();
  EXPECT_FALSE(writer.wait_for(milliseconds(20)));
  EXPECT_EQ(writer.pending(), 2u);
  EXPECT_THAT(writer.take_messages(), ElementsAre(HasSubstr("does not answer")));
  EXPECT_THAT(writer.take_messages(), IsEmpty());
  disk.answer();
  ASSERT_TRUE(writer.wait_for(seconds(60)));
  EXPECT_EQ(later, 1);
  EXPECT_THAT(writer.take_messages(), SizeIs(1));
}

TEST(OutputWriter, QueueFilledFasterThanTheDiskWrites_IsSaid) {
  OutputWriter writer("out", seconds(3600), 3);
  StuckDisk disk;
  writer.write([&] { disk.write(); });
  disk.wait_for_write();
  for (int i = 0; i < 5; ++i) writer.write([] {});
  EXPECT_THAT(writer.take_messages(),
              ElementsAre(::testing::AllOf(HasSubstr("the oldest of 3"), HasSubstr("dropped"))));
  disk.answer();
  ASSERT_TRUE(writer.wait_for(seconds(60)));
}

TEST(OutputWriter, FullQueue_DropsTheOldestTasksAndSaysSo) {
  OutputWriter writer("out", milliseconds(1), 3);
  StuckDisk disk;
  writer.write([&] { disk.write(); });
  disk.wait_for_write();
  EXPECT_FALSE(writer.wait_for(milliseconds(20)));
  std::vector<int> done;
  for (int i = 0; i < 5; ++i) writer.write([&done, i] { done.push_back(i); });
  EXPECT_THAT(writer.take_messages(), SizeIs(1));
  disk.answer();
  ASSERT_TRUE(writer.wait_for(seconds(60)));
  EXPECT_THAT(done, ElementsAre(2, 3, 4));
  EXPECT_THAT(writer.take_messages(), ElementsAre(HasSubstr("the oldest 2 writes were dropped")));
}

TEST(OutputWriter, FailuresInARow_AreOneMessage) {
  OutputWriter writer("out");
  const auto fail = [] { throw Error(ErrorCode::kIo, "no space left", "out/metrics.jsonl"); };
  writer.write(fail);
  writer.write(fail);
  writer.write([] {});
  writer.write(fail);
  ASSERT_TRUE(writer.wait_for(seconds(60)));
  EXPECT_THAT(writer.take_messages(), SizeIs(2));
}

}  // namespace
}  // namespace fleet
