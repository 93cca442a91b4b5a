#include "diagnosis/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

StackCluster stack(int rank, std::vector<std::string> frames, char state = 'S') {
  StackCluster one;
  one.add_ranks()->set_rank(rank);
  one.mutable_ranks(0)->set_state(state);
  one.mutable_frames()->Assign(frames.begin(), frames.end());
  return one;
}

Stacks clusters_of(const std::vector<StackCluster>& stacks) {
  Stacks all;
  all.mutable_clusters()->Assign(stacks.begin(), stacks.end());
  return cluster_stacks(all);
}

TEST(FramesOf, Gdb_TheFirstThread) {
  const char* printed =
      "[New LWP 12]\n\nThread 2 (Thread 0x7f1 (LWP 12) \"io\"):\n"
      "#0  0x00007f01 in epoll_wait () from /lib/libc.so.6\n\n"
      "Thread 1 (Thread 0x7f0 (LWP 11) \"rank\"):\n"
      "#0  0x00007f02 in clock_nanosleep () from /lib/libc.so.6\n"
      "#1  fleet::(anonymous namespace)::run (argc=2, argv=0x7ffc) at main.cc:90\n"
      "#2  0x00005502 in main ()\n[Inferior 1 (process 11) detached]\n";
  EXPECT_THAT(frames_of(printed, 11),
              ElementsAre("clock_nanosleep", "fleet::(anonymous namespace)::run", "main"));
}

TEST(FramesOf, EuStack_TheFirstThread) {
  const char* printed =
      "PID 11 - process\nTID 11:\n#0  0x00007f02 clock_nanosleep\n#1  0x00005502 main - 1\n"
      "TID 12:\n#0  0x00007f01 epoll_wait\n";
  EXPECT_THAT(frames_of(printed, 11), ElementsAre("clock_nanosleep", "main"));
}

TEST(FramesOf, SomethingElse_IsNothing) {
  EXPECT_TRUE(frames_of("ptrace: Operation not permitted.\n", 11).empty());
}

TEST(ClusterStacks, LargestFirstAndByRank) {
  const auto clusters = clusters_of(
      {stack(2, {"wait"}), stack(3, {"read"}), stack(0, {"wait"}), stack(1, {"wait"}, 'R')});
  ASSERT_EQ(clusters.clusters_size(), 2);
  EXPECT_EQ(clusters.clusters(0).ranks_size(), 3);
  EXPECT_EQ(clusters.clusters(0).ranks(0).rank(), 0);
  EXPECT_THAT(stacks_text(clusters), AllOf(HasSubstr("\n  ranks 0-2: sleeping\n    #0 wait"),
                                           HasSubstr("\n  rank 3: sleeping\n    #0 read")));
}

TEST(FindOutlier, AloneAgainstMost) {
  const auto clusters = clusters_of({stack(0, {"a"}), stack(1, {"b"}), stack(2, {"a"})});
  ASSERT_NE(find_outlier(clusters), nullptr);
  EXPECT_EQ(find_outlier(clusters)->rank(), 1);
}

TEST(FindOutlier, Stopped_EvenWithTheSameFrames) {
  const auto clusters = clusters_of({stack(0, {"a"}), stack(1, {"a"}, 'T')});
  ASSERT_NE(find_outlier(clusters), nullptr);
  EXPECT_EQ(find_outlier(clusters)->rank(), 1);
  EXPECT_THAT(stacks_text(clusters), HasSubstr("rank 1: stopped (by a signal)"));
}

TEST(FindOutlier, AllAlikeOrAllDifferent_IsNone) {
  EXPECT_EQ(find_outlier(clusters_of({stack(0, {"a"}), stack(1, {"a"})})), nullptr);
  EXPECT_EQ(find_outlier(clusters_of({stack(0, {"a"}), stack(1, {"b"})})), nullptr);
  EXPECT_EQ(find_outlier(clusters_of({stack(0, {"a"}), stack(1, {"b"}), stack(2, {"c"})})),
            nullptr);
  EXPECT_EQ(find_outlier({}), nullptr);
}

TEST(StacksText, MissingStack_SaysWhy) {
  StackCluster one = stack(0, {});
  one.set_missing("neither eu-stack nor gdb is installed");
  one.mutable_ranks(0)->set_channel("futex_wait_queue");
  EXPECT_THAT(stacks_text(clusters_of({one})),
              HasSubstr("rank 0: sleeping in futex_wait_queue; no stack: neither eu-stack"));
}

TEST(StacksText, PythonFrames_AreAboveTheNativeOnesAndTellRanksApart) {
  StackCluster one = stack(0, {"wait"}), other = stack(1, {"wait"}), same = stack(2, {"wait"});
  for (StackCluster* each : {&one, &same}) each->add_python_frames("step (/x/train.py:12)");
  other.add_python_frames("load (/x/data.py:3)");
  const Stacks clusters = clusters_of({one, other, same});
  ASSERT_EQ(clusters.clusters_size(), 2);
  EXPECT_EQ(stacks_text(clusters),
            "\n  ranks 0,2: sleeping\n    Python: step (/x/train.py:12)\n    #0 wait"
            "\n  rank 1: sleeping\n    Python: load (/x/data.py:3)\n    #0 wait");
  EXPECT_EQ(find_outlier(clusters)->rank(), 1);
}

TEST(StacksText, NoPythonFrames_SaysWhatWouldShowThem) {
  StackCluster one = stack(0, {"wait"});
  one.set_python_missing("py-spy would show them");
  EXPECT_THAT(stacks_text(clusters_of({one})),
              HasSubstr("Python: py-spy would show them\n    #0 wait"));
}

TEST(StacksText, ManyKinds_AreBounded) {
  std::vector<StackCluster> stacks;
  for (int rank = 0; rank < 20; ++rank) {
    stacks.push_back(stack(rank, {"f" + std::to_string(rank)}));
  }
  EXPECT_THAT(stacks_text(clusters_of(stacks)),
              testing::AllOf(testing::HasSubstr("#0 f15"), testing::Not(testing::HasSubstr("f16")),
                             testing::EndsWith("and 4 more that differ")));
}

}  // namespace
}  // namespace fleet
