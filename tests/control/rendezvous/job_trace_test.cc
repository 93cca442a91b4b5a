// Requests for traces, which the host passes on.
#include <gtest/gtest.h>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {
namespace {

using Job = SteadyJob;

TraceRequest request_of(TraceRequest::Kind kind, uint64_t ticket) {
  TraceRequest request;
  request.set_kind(kind);
  request.set_ticket(ticket);
  return request;
}

TEST(JobState, TraceIsRequested_EveryNodeIsAskedAndTheAskerGetsTheAnswers) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.send(2, &wire::NodeMessage::mutable_trace_request, request_of(TraceRequest::BEGIN, 7));
  for (const SessionId session : {1, 2}) {
    const auto asked = job.events_for<TraceRequest>(session);
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].ticket(), 7u);
    TraceAnswer answer;
    answer.set_ticket(asked[0].ticket());
    answer.set_requester(asked[0].requester());
    answer.mutable_node();
    job.send(session, &wire::NodeMessage::mutable_trace_answer, answer);
  }
  EXPECT_TRUE(job.events_for<TraceAnswer>(1).empty());
  const auto answers = job.events_for<TraceAnswer>(2);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].node_rank(), 0);
  EXPECT_EQ(answers[1].node_rank(), 1);
  EXPECT_FALSE(job.state.verdict());
}

TEST(JobState, PieceOfATrace_IsAskedOfItsNodeOnly) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  TraceRequest request = request_of(TraceRequest::READ, 8);
  request.set_node_rank(1);
  job.send(1, &wire::NodeMessage::mutable_trace_request, request);
  EXPECT_TRUE(job.events_for<TraceRequest>(1).empty());
  EXPECT_EQ(job.events_for<TraceRequest>(2).size(), 1u);
}

TEST(JobState, AnswerToANodeThatHasGone_IsDropped) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  TraceAnswer answer;
  answer.set_requester(99);
  job.send(1, &wire::NodeMessage::mutable_trace_answer, answer);
  EXPECT_FALSE(job.state.verdict());
  EXPECT_TRUE(job.events_for<TraceAnswer>(1).empty());
  EXPECT_TRUE(job.events_for<TraceAnswer>(2).empty());
}

}  // namespace
}  // namespace fleet
