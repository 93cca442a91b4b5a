#include "diagnosis/stack_waits.h"

#include <gtest/gtest.h>

#include <vector>

namespace fleet {
namespace {

StackCluster with_frames(const std::vector<std::string>& frames,
                         const std::vector<std::string>& python = {}) {
  StackCluster cluster;
  cluster.mutable_frames()->Assign(frames.begin(), frames.end());
  cluster.mutable_python_frames()->Assign(python.begin(), python.end());
  return cluster;
}

TEST(WaitsFor, FunctionsOnTheStack_TellIt) {
  EXPECT_EQ(waits_for(with_frames({"poll", "c10d::TCPStore::wait", "main"})), "the store");
  EXPECT_EQ(waits_for(with_frames({"futex", "gloo::transport::tcp::Buffer::waitRecv"})),
            "a collective");
  EXPECT_EQ(waits_for(with_frames({"read", "fleet::DevicePrefetcher::next"})), "data");
  EXPECT_EQ(waits_for(with_frames({"clock_nanosleep", "main"})), "");
}

TEST(WaitsFor, PythonFrames_ComeFirst) {
  EXPECT_EQ(waits_for(with_frames({"c10d::ProcessGroup::wait"},
                                  {"_next_data (/x/dataloader.py:3)", "<module> (/x/train.py:9)"})),
            "data");
}

TEST(WaitsFor, InnermostFunction_Counts) {
  EXPECT_EQ(waits_for(with_frames({"c10d::TCPStore::get", "c10d::ProcessGroupGloo::barrier"})),
            "the store");
}

}  // namespace
}  // namespace fleet
