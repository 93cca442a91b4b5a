#include <gmock/gmock.h>
#include <signal.h>

#include "tests/control/viewing/trace/decoded_trace.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

constexpr int64_t kStart = 50'000'000'000;

LauncherEvent event_of(LauncherEvent::Kind kind, int64_t at_ns, int number, int local_rank = -1) {
  LauncherEvent event;
  event.set_kind(kind);
  event.set_at_ns(at_ns);
  event.set_number(number);
  if (local_rank >= 0) event.set_local_rank(local_rank);
  return event;
}

// Two nodes with a rank each. The second one's clock is an hour behind.
struct PerfettoTraceTest : ::testing::Test {
  static constexpr int64_t kBehind = 3'600'000'000'000;
  PerfettoTraceTest() {
    for (int i = 0; i < 2; ++i) {
      trace.nodes[i] = {.node_rank = i, .hostname = "host" + std::to_string(i), .calibrated = true};
      RankTrace rank{.node_rank = i};
      rank.rank.set_rank(i);
      rank.rank.set_pid(77);  // of different nodes
      rank.rank.set_generation(1);
      rank.names[0] = {"step", "step", "", ""};
      rank.names[1] = {"operation", "conv2d", "layer1", ""};
      rank.names[2] = {"collective", "all_reduce", "bucket 4", "data parallel/0"};
      rank.tracks[0] = "training";
      rank.tracks[1] = "stream 0";
      trace.ranks.push_back(std::move(rank));
    }
    trace.nodes[1].clock = {.offset_ns = kBehind, .error_ns = 1'500};
  }
  void add(int rank, uint32_t track, uint32_t name, int64_t begin, int64_t end, int64_t value) {
    const int64_t own = kStart - (rank == 1 ? kBehind : 0);
    trace.ranks[static_cast<size_t>(rank)].records.push_back(
        {own + begin, own + end, value, name, track});
  }
  DecodedTrace written() const {
    std::string bytes;
    write_perfetto(trace, [&](std::string_view piece) { bytes += piece; });
    return TraceDecoder::decode(bytes);
  }

  JobTrace trace;
};

TEST_F(PerfettoTraceTest, TwoClocks_OneTimeAxis) {
  add(0, 1, 1, 100, 200, 5);
  add(1, 1, 1, 150, 250, 5);
  const DecodedTrace decoded = written();
  const auto first = decoded.of("rank 0", "conv2d"), second = decoded.of("rank 1", "conv2d");
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].begin_ns, kStart + 100);
  EXPECT_EQ(second[0].begin_ns, kStart + 150);
  EXPECT_EQ(second[0].end_ns, kStart + 250);
  EXPECT_EQ(first[0].track, "stream 0");
  EXPECT_EQ(first[0].annotations.at("output"), "layer1");
  EXPECT_EQ(first[0].annotations.at("step"), "5");
}

TEST_F(PerfettoTraceTest, Clock_IsInTheMetadataOfEachRank) {
  add(1, 1, 1, 150, 250, 5);
  const DecodedTrace decoded = written();
  const auto about = decoded.of("rank 1", "about");
  ASSERT_EQ(about.size(), 1u);
  EXPECT_EQ(about[0].annotations.at("clock_error_ns"), "1500");
  EXPECT_EQ(about[0].annotations.at("clock_offset_ns"), std::to_string(kBehind));
  EXPECT_EQ(about[0].annotations.at("pid"), "77");
  EXPECT_THAT(decoded.labels.at("rank 1"),
              testing::ElementsAre("node 1 (host1)", "clock +-1.5 us"));
}

TEST_F(PerfettoTraceTest, CallsOfOneCollective_HaveOneFlow) {
  for (const int rank : {0, 1}) {
    add(rank, 1, 2, 100, 200, 812);
    add(rank, 1, 2, 300, 400, 813);
  }
  const DecodedTrace decoded = written();
  const auto first = decoded.of("rank 0", "all_reduce"),
             second = decoded.of("rank 1", "all_reduce");
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(first[i].flows.size(), 1u);
    EXPECT_EQ(first[i].flows, second[i].flows);
    EXPECT_EQ(first[i].annotations.at("sequence"), std::to_string(812 + i));
    EXPECT_EQ(first[i].annotations.at("for"), "bucket 4");
  }
  EXPECT_NE(first[0].flows, first[1].flows);
}

TEST_F(PerfettoTraceTest, ActivitiesWithinOthers_Nest) {
  add(0, 0, 1, 120, 130, 0);  // in the order in which they end
  add(0, 0, 1, 130, 200, 0);
  add(0, 0, 0, 100, 200, 0);
  add(0, 0, 0, 200, 300, 1);
  add(0, 0, 1, 290, 320, 0);  // leaves what contains it: it is cut
  const DecodedTrace decoded = written();
  const auto steps = decoded.of("rank 0", "step"), inner = decoded.of("rank 0", "conv2d");
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(inner.size(), 3u);
  for (const DecodedSlice& step : steps) EXPECT_EQ(step.depth, 0u);
  for (const DecodedSlice& one : inner) EXPECT_EQ(one.depth, 1u);
  EXPECT_EQ(inner[2].end_ns, kStart + 300);
}

TEST_F(PerfettoTraceTest, StoppedRank_ShowsItAtItsPlace) {
  add(0, 1, 1, 0, 10, 0);
  add(0, 1, 1, 60'000'000, 60'000'010, 1);
  trace.nodes[0].later = {event_of(LauncherEvent::CONTINUED, kStart + 59'000'000, SIGCONT, 0),
                          event_of(LauncherEvent::STOPPED, kStart + 9'000'000, SIGSTOP, 0)};
  const DecodedTrace decoded = written();
  const auto stopped = decoded.of("rank 0", "stopped by SIGSTOP");
  ASSERT_EQ(stopped.size(), 1u);
  EXPECT_EQ(stopped[0].begin_ns, kStart + 9'000'000);
  EXPECT_EQ(decoded.of("rank 0", "continues").size(), 1u);
}

TEST_F(PerfettoTraceTest, EventsLongBefore_AreToldAndDoNotStretchTheAxis) {
  add(0, 1, 1, 0, 10, 0);
  trace.nodes[0].events = {event_of(LauncherEvent::GENERATION, kStart - 40'000'000'000, 1),
                           event_of(LauncherEvent::STARTED, kStart - 39'000'000'000, 77, 0),
                           event_of(LauncherEvent::FIRST_STEP, kStart - 1'000'000'000, 0, 0)};
  const DecodedTrace decoded = written();
  for (const DecodedSlice& instant : decoded.instants) {
    EXPECT_GE(instant.begin_ns, kStart - 10'000'000'000) << instant.name;
  }
  const auto about = decoded.of("rank 0", "about");
  ASSERT_EQ(about.size(), 1u);
  EXPECT_EQ(about[0].annotations.at("started as process 77"), "39.000 s before");
  EXPECT_EQ(decoded.of("rank 0", "first step done").size(), 1u);
  const auto launcher = decoded.of("launcher, node 0", "about");
  ASSERT_EQ(launcher.size(), 1u);
  EXPECT_EQ(launcher[0].annotations.at("generation 1 begins"), "40.000 s before");
}

TEST_F(PerfettoTraceTest, ForeignRanks_ShowWhatTheLauncherSaw) {
  trace.nodes[1].events = {event_of(LauncherEvent::STARTED, 10 - kBehind, 77, 0),
                           event_of(LauncherEvent::FIRST_OUTPUT, 70'000'000'000 - kBehind, 0, 0),
                           event_of(LauncherEvent::EXITED, 80'000'000'000 - kBehind, 3, 0)};
  const DecodedTrace decoded = written();
  EXPECT_EQ(decoded.of("rank 1", "started as process 77").at(0).begin_ns, 10);
  EXPECT_EQ(decoded.of("rank 1", "first output").at(0).begin_ns, 70'000'000'000);
  EXPECT_EQ(decoded.of("rank 1", "exited with code 3").size(), 1u);
  EXPECT_EQ(decoded.of("rank 0", "about").size(), 1u);
}

TEST_F(PerfettoTraceTest, RecordsWithoutNames_AreStillThere) {
  add(0, 9, 9, 0, 10, 0);
  const auto found = written().of("rank 0", "?");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].track, "track 9");
}

}  // namespace
}  // namespace fleet
