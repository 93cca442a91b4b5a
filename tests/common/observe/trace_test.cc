#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "observe/rank_progress.h"
#include "observe/trace_memory.h"
#include "observe/trace_recorder.h"

namespace fleet {
namespace {

TracePart all_of(const TraceReader& reader) { return reader.read({}, TraceMemory::kBytes); }

TEST(Trace, RequestOfTheLauncher_IsSeenByTheRankThroughItsProgress) {
  ProgressReader launcher;
  const ProgressWriter rank(launcher.path());
  EXPECT_EQ(rank.trace_request(), 0u);
  const TraceReader first(20), second(3);
  launcher.request_trace(first.file());
  const uint64_t request = rank.trace_request();
  EXPECT_NE(request, 0u);
  EXPECT_EQ(rank.trace_path(request), first.path());
  launcher.request_trace(second.file());
  EXPECT_NE(rank.trace_request(), request);
  const auto recorder = TraceRecorder::open(rank.trace_path(rank.trace_request()));
  ASSERT_TRUE(recorder);
  EXPECT_EQ(recorder->steps(), 3);
}

TEST(Trace, SameFileAgain_IsRequestedAgain) {
  ProgressReader launcher;
  const ProgressWriter rank(launcher.path());
  launcher.request_trace(7);
  const uint64_t before = rank.trace_request();
  launcher.request_trace(7);
  EXPECT_NE(rank.trace_request(), before);
}

TEST(Trace, RankWithoutLauncher_IsNeverAsked) {
  const ProgressWriter rank;
  EXPECT_EQ(rank.trace_request(), 0u);
}

TEST(Trace, WhatARankWrites_IsReadInPieces) {
  const TraceReader reader(1);
  const auto recorder = TraceRecorder::open(reader.path());
  ASSERT_TRUE(recorder);
  const uint32_t name = recorder->add_name("operation", "re\tlu", "layer1", "key");
  const uint32_t track = recorder->add_track("stream 0");
  TracePosition at;
  for (int i = 0; i < 10; ++i) recorder->add(track, name, i, i + 5, 100 + i);
  std::string text;
  std::vector<TraceRecord> records;
  for (int i = 0; i < 100; ++i) {
    const TracePart part = reader.read(at, 4 * sizeof(TraceRecord));
    text += part.text;
    records.insert(records.end(), part.records.begin(), part.records.end());
    EXPECT_LE(part.records.size(), 2u);
    at = part.next;
  }
  ASSERT_EQ(records.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(records[i].begin_ns, i);
    EXPECT_EQ(records[i].end_ns, i + 5);
    EXPECT_EQ(records[i].value, 100 + i);
    EXPECT_EQ(records[i].name, name);
    EXPECT_EQ(records[i].track, track);
  }
  EXPECT_NE(text.find("name\t" + std::to_string(name) + "\toperation\tre lu\tlayer1\tkey\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("name\t0\tstep\tstep\t\t\n"), std::string::npos) << text;
  EXPECT_NE(text.find("track\t0\tstream 0\n"), std::string::npos) << text;
  EXPECT_EQ(at, reader.status().end);
}

TEST(Trace, State_FollowsTheRank) {
  const TraceReader reader(2);
  EXPECT_EQ(reader.status().pid, 0);
  const auto recorder = TraceRecorder::open(reader.path());
  EXPECT_EQ(reader.status().state, TraceMemory::kRecording);
  EXPECT_EQ(reader.status().pid, ::getpid());
  EXPECT_EQ(reader.status().time_namespace, own_time_namespace());
  recorder->step_done();
  EXPECT_EQ(reader.status().steps_done, 1);
  recorder->finish();
  EXPECT_EQ(reader.status().state, TraceMemory::kDone);
  EXPECT_FALSE(TraceRecorder::open(reader.path()));  // a second process of the rank
}

TEST(Trace, MoreThanFits_IsCounted) {
  const TraceReader reader(1);
  const auto recorder = TraceRecorder::open(reader.path());
  for (size_t i = 0; i < TraceMemory::kRecords + 3; ++i) recorder->add(0, 0, 1, 2, 3);
  EXPECT_EQ(reader.status().dropped, 3u);
  EXPECT_EQ(reader.status().end.records, TraceMemory::kRecords);
}

TEST(Trace, OtherFile_IsLeftAlone) {
  EXPECT_FALSE(TraceRecorder::open("/proc/self/exe"));
  EXPECT_FALSE(TraceRecorder::open("/no/such/file"));
}

TEST(TraceSpan, Off_RecordsNothing) {
  const TraceSpan span(TraceName::kDecode, 5);
  EXPECT_FALSE(TraceRecorder::in_use());
}

TEST(TraceSpan, OnSeveralThreads_EachHasItsTrack) {
  const TraceReader reader(1);
  const auto recorder = TraceRecorder::open(reader.path());
  ASSERT_TRUE(recorder);
  TraceRecorder::set_active(recorder.get());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < 1000; ++k) const TraceSpan span(TraceName::kDecode, k);
      });
    }
  }
  TraceRecorder::set_active(nullptr);
  EXPECT_FALSE(TraceRecorder::in_use());
  { const TraceSpan late(TraceName::kDecode); }
  const TracePart part = all_of(reader);
  EXPECT_EQ(part.records.size(), 4000u);
  std::set<uint32_t> tracks;
  for (const TraceRecord& record : part.records) {
    tracks.insert(record.track);
    EXPECT_EQ(record.name, number_of(TraceName::kDecode));
    EXPECT_LE(record.begin_ns, record.end_ns);
  }
  EXPECT_EQ(tracks.size(), 4u);
}

TEST(TraceSpan, OpenWhileTheTraceEnds_KeepsTheRecorderInUse) {
  const TraceReader reader(1);
  const auto recorder = TraceRecorder::open(reader.path());
  TraceRecorder::set_active(recorder.get());
  TraceSpan span(TraceName::kRead, 9);
  TraceRecorder::set_active(nullptr);
  EXPECT_TRUE(TraceRecorder::in_use());
  span.end();
  EXPECT_FALSE(TraceRecorder::in_use());
  EXPECT_EQ(all_of(reader).records.size(), 1u);
}

}  // namespace
}  // namespace fleet
