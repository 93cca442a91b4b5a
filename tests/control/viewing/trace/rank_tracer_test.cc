#include "node/rank_tracer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "observe/trace_recorder.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

TraceRequest request_of(TraceRequest::Kind kind) {
  TraceRequest request;
  request.set_kind(kind);
  request.set_ticket(3);
  request.set_steps(2);
  return request;
}

struct RankTracerTest : ::testing::Test {
  std::vector<RankTracer::Target> targets() {
    return {{.local_rank = 0, .rank = 4, .pid = 100, .of_engine = true, .progress = &progress},
            {.local_rank = 1, .rank = 5, .pid = 101, .progress = &foreign}};
  }
  wire::NodeTrace ask(TraceRequest::Kind kind) {
    return tracer.answer(request_of(kind), targets()).node();
  }
  std::unique_ptr<TraceRecorder> recorder() {
    const ProgressWriter rank(progress.path());
    return TraceRecorder::open(rank.trace_path(rank.trace_request()));
  }

  ProgressReader progress, foreign;
  RankTracer tracer;
};

TEST_F(RankTracerTest, Begin_AsksTheRanksOfTheEngine) {
  const wire::NodeTrace node = ask(TraceRequest::BEGIN);
  ASSERT_EQ(node.ranks_size(), 2);
  EXPECT_EQ(node.ranks(0).state(), TracedRank::REQUESTED);
  EXPECT_EQ(node.ranks(0).rank(), 4);
  EXPECT_EQ(node.ranks(1).state(), TracedRank::NONE);
  const auto rank = recorder();
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->steps(), 2);
  rank->step_done();
  const wire::NodeTrace later = ask(TraceRequest::STATUS);
  EXPECT_EQ(later.ranks(0).state(), TracedRank::RECORDING);
  EXPECT_EQ(later.ranks(0).steps_done(), 1);
  EXPECT_TRUE(later.ranks(0).refused().empty());
  rank->finish();
  EXPECT_EQ(ask(TraceRequest::STATUS).ranks(0).state(), TracedRank::DONE);
  EXPECT_EQ(ask(TraceRequest::END).ranks_size(), 0);
}

TEST_F(RankTracerTest, Pieces_AreAllThatTheRankWrote) {
  ask(TraceRequest::BEGIN);
  const auto rank = recorder();
  const uint32_t name = rank->add_name("operation", "relu", "out");
  const uint32_t track = rank->add_track("stream 0");
  constexpr int kCount = 50'000;  // more than one piece
  for (int i = 0; i < kCount; ++i) rank->add(track, name, i, i + 1, i);
  tracer.on_rank_ended(100);  // it stays readable
  EXPECT_TRUE(ask(TraceRequest::STATUS).ranks(0).ended());
  RankTrace trace;
  uint64_t text = 0;
  int pieces = 0;
  for (; pieces < 100; ++pieces) {
    TraceRequest request = request_of(TraceRequest::READ);
    request.set_text_at(text);
    request.set_records_at(trace.records.size());
    const TraceAnswer answer = tracer.answer(request, {});
    EXPECT_EQ(answer.ticket(), 3u);
    EXPECT_LE(answer.ByteSizeLong(), RankTracer::kPieceBytes + 100);
    if (answer.piece().text().empty() && answer.piece().records().empty()) break;
    text += answer.piece().text().size();
    trace.add(answer.piece());
  }
  EXPECT_GT(pieces, 1);
  ASSERT_EQ(trace.records.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(trace.records.back().value, kCount - 1);
  EXPECT_EQ(trace.names.at(name).name, "relu");
  EXPECT_EQ(trace.names.at(name).detail, "out");
  EXPECT_EQ(trace.tracks.at(track), "stream 0");
}

TEST_F(RankTracerTest, PlaceThatDoesNotExist_IsAnEmptyPiece) {
  TraceRequest request = request_of(TraceRequest::READ);
  request.set_index(7);
  EXPECT_TRUE(tracer.answer(request, {}).piece().records().empty());
  ask(TraceRequest::BEGIN);
  request.set_index(0);
  request.set_records_at(uint64_t{1} << 60);
  request.set_text_at(uint64_t{1} << 60);
  EXPECT_TRUE(tracer.answer(request, {}).piece().records().empty());
}

TEST_F(RankTracerTest, Events_AreTheAskersOnce) {
  tracer.begin_generation(1, 10);
  tracer.note(LauncherEvent::STARTED, 0, 4, 100, 20);
  const wire::NodeTrace begun = ask(TraceRequest::BEGIN);
  ASSERT_EQ(begun.events_size(), 2);
  EXPECT_FALSE(begun.events(0).has_local_rank());
  EXPECT_EQ(begun.events(1).rank(), 4);
  EXPECT_EQ(begun.events(1).generation(), 1);
  tracer.note(LauncherEvent::STOPPED, 0, 4, 19, 30);
  const wire::NodeTrace later = ask(TraceRequest::STATUS);
  ASSERT_EQ(later.events_size(), 1);
  EXPECT_EQ(later.events(0).kind(), LauncherEvent::STOPPED);
  for (int i = 0; i < 5'000; ++i) tracer.note(LauncherEvent::SIGNAL, -1, -1, 10, 40 + i);
  EXPECT_EQ(ask(TraceRequest::BEGIN).events_size(), 2'000);
}

}  // namespace
}  // namespace fleet
