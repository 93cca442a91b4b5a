#include <gtest/gtest.h>

#include "backend/cuda/device.h"
#include "backend/cuda/types.h"

namespace fleet {
namespace {

__global__ void increase(int* value) { *value += 1; }

class EmulatedGraph : public testing::Test {
 protected:
  EmulatedGraph()
      : device_(0, {}),
        memory_(device_.allocate(sizeof(int))),
        value_(static_cast<int*>(memory_.data())),
        one_(device_.make_stream("one")),
        two_(device_.make_stream("two")),
        event_(device_.make_event()) {}
  void increase_on(Stream& stream) {
    cuda::launch(increase, 1, 1, 0, cuda::stream_of(stream), value_);
  }

  cuda::CudaDevice device_;
  Buffer memory_;
  int* value_;
  std::unique_ptr<Stream> one_, two_;
  std::unique_ptr<Event> event_;
};

TEST_F(EmulatedGraph, Recording_RunsOnlyWhenLaunchedAndEachTime) {
  const auto recording = device_.record(*one_, [&] {
    increase_on(*one_);
    increase_on(*one_);
  });
  EXPECT_EQ(*value_, 0);
  recording->launch(*one_);
  recording->launch(*one_);
  EXPECT_EQ(*value_, 4);
}

TEST_F(EmulatedGraph, ForkedAndJoinedStream_IsPartOfTheRecording) {
  const auto recording = device_.record(*one_, [&] {
    one_->record(*event_);
    two_->wait(*event_);
    increase_on(*two_);
    two_->record(*event_);
    one_->wait(*event_);
  });
  EXPECT_EQ(*value_, 0);
  recording->launch(*one_);
  EXPECT_EQ(*value_, 1);
}

TEST_F(EmulatedGraph, ForkedStreamThatIsNotJoined_IsRefused) {
  const auto issue = [&] {
    one_->record(*event_);
    two_->wait(*event_);
    increase_on(*two_);
  };
  EXPECT_THROW(device_.record(*one_, issue), Error);
}

TEST_F(EmulatedGraph, WaitOrAllocationWithinARecording_IsRefused) {
  EXPECT_THROW(device_.record(*one_, [&] { one_->synchronize(); }), Error);
  EXPECT_THROW(device_.record(*one_, [&] { device_.allocate(64); }), Error);
  one_->synchronize();  // and is over afterwards
  increase_on(*one_);
  EXPECT_EQ(*value_, 1);
}

TEST(EmulatedLaunch, BlockTooLarge_IsRefused) {
  int value = 0;
  EXPECT_THROW(cuda::launch(increase, 1, 2048, 0, nullptr, &value), Error);
}

}  // namespace
}  // namespace fleet
