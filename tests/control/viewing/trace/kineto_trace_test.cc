
#include <gmock/gmock.h>

#include "tests/control/viewing/trace/decoded_trace.h"
#include "tests/errors.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

using testing::HasSubstr;

constexpr int64_t kRealtime = 1'790'857'026'000'000'000;

// Rank 0 on a node that is the host, rank 1 on one whose clocks differ. Both are foreign.
struct KinetoTest : ::testing::Test {
  KinetoTest() {
    for (int i = 0; i < 2; ++i) {
      TracedNode& node = trace.nodes[i];
      node.node_rank = i;
      node.calibrated = true;
      node.clock = {.offset_ns = i * 1'000'000, .error_ns = 10};
      node.realtime.emplace_back();
      node.realtime[0].set_since_ns(5);
      node.realtime[0].set_offset_ns(kRealtime - 7'000);  // realtime = monotonic + this
      RankTrace rank{.node_rank = i};
      rank.rank.set_rank(i);
      rank.rank.set_pid(6180 + i);
      trace.ranks.push_back(rank);
    }
  }
  DecodedTrace written() const {
    std::string bytes;
    write_perfetto(trace, [&](std::string_view piece) { bytes += piece; });
    return TraceDecoder::decode(bytes);
  }
  static std::string file(const std::string& more) {
    return R"({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000, )" + more +
           R"("traceEvents": [
      {"ph": "M", "name": "thread_name", "ts": 0, "pid": 6181, "tid": 6181, "args": {"name": "main"}},
      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 6181, "tid": 6181, "ts": 20.5, "dur": 10.25},
      {"ph": "X", "cat": "cpu_op", "name": "aten::matmul", "pid": 6181, "tid": 6181, "ts": 20.0, "dur": 11.0},
      {"ph": "i", "name": "mark", "pid": 6181, "tid": 6181, "ts": 20.0, "s": "t"},
      {"ph": "X", "cat": "cpu_op", "name": "broken", "pid": 6181, "tid": 6181, "ts": "x", "dur": 1},
      7]})";
  }

  JobTrace trace;
};

TEST_F(KinetoTest, FileOfARank_IsPlacedOnTheSameAxis) {
  EXPECT_EQ(merge_chrome_trace(file(R"("distributedInfo": {"rank": 1},)"), {{}, "k.json"}, &trace),
            2u);
  const DecodedTrace decoded = written();
  const auto outer = decoded.of("rank 1", "aten::matmul"), inner = decoded.of("rank 1", "aten::mm");
  ASSERT_EQ(outer.size(), 1u);
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(outer[0].begin_ns, 7'000 + 20'000 + 1'000'000);
  EXPECT_EQ(outer[0].end_ns - outer[0].begin_ns, 11'000);
  EXPECT_EQ(inner[0].begin_ns, outer[0].begin_ns + 500);
  EXPECT_EQ(inner[0].end_ns - inner[0].begin_ns, 10'250);
  EXPECT_EQ(inner[0].depth, 1u);
  EXPECT_EQ(inner[0].track, "merged: main");
  EXPECT_EQ(inner[0].category, "cpu_op");
}

TEST_F(KinetoTest, WithoutARank_TheProcessDecides) {
  EXPECT_EQ(merge_chrome_trace(file(""), {{}, "k.json"}, &trace), 2u);
  EXPECT_TRUE(trace.ranks[0].records.empty());
  EXPECT_EQ(trace.ranks[1].records.size(), 2u);
}

TEST_F(KinetoTest, RankOnTheCommandLine_IsStronger) {
  EXPECT_EQ(merge_chrome_trace(file(R"("distributedInfo": {"rank": 1},)"), {0, "k.json"}, &trace),
            2u);
  EXPECT_EQ(trace.ranks[0].records.size(), 2u);
}

TEST_F(KinetoTest, WhatCannotBePlaced_IsRefusedByName) {
  const auto failure = [&](const std::string& json, const MergedFile& given) {
    return usage_failure([&] { merge_chrome_trace(json, given, &trace); });
  };
  EXPECT_THAT(failure(file(""), {5, "k.json"}), HasSubstr("rank 5 is not in the trace"));
  EXPECT_THAT(failure("[]", {0, "k.json"}), HasSubstr("no Chrome trace"));
  EXPECT_THAT(failure("\x1f\x8b...", {0, "k.json"}), HasSubstr("compressed"));
  trace.ranks[1].rank.set_pid(1);
  EXPECT_THAT(failure(file(""), {{}, "k.json"}), HasSubstr("does not say which rank"));
  trace.nodes[0].realtime.clear();
  EXPECT_THAT(failure(file(""), {0, "k.json"}), HasSubstr("clocks of node 0"));
}

TEST(MergedFile, RankBeforeThePath_IsItsRank) {
  EXPECT_EQ(merged_file("3=k.json").rank, 3);
  EXPECT_EQ(merged_file("3=k.json").path, "k.json");
  EXPECT_FALSE(merged_file("a=k.json").rank);
  EXPECT_EQ(merged_file("a=k.json").path, "a=k.json");
  EXPECT_FALSE(merged_file("k.json").rank);
}

}  // namespace
}  // namespace fleet
