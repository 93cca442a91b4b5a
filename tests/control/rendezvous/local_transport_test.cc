// A host and the node in its process: no socket and no gRPC.
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "rendezvous/job_host.h"
#include "rendezvous/node_transport.h"
#include "tests/control/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

struct LocalJob {
  explicit LocalJob(JobSpec spec = job_of({"10.0.0.1"}), JobTimes times = {})
      : host(std::make_shared<JobHost>(spec, times, "10.0.0.1:6768", nullptr)) {
    node = make_node();
    node->client->start(node_of(spec, "10.0.0.1"));
  }
  std::unique_ptr<TestNode> make_node() const {
    return std::make_unique<TestNode>("10.0.0.1:6768", kSoon, kSoon, Security{}, host);
  }

  std::shared_ptr<JobHost> host;
  std::unique_ptr<TestNode> node;
};

wire::Caller caller() {
  wire::Caller caller;
  caller.set_job_id("default");
  caller.set_generation(1);
  return caller;
}

TEST(LocalTransport, OneNode_IsAssignedAndReceivesTheVerdict) {
  LocalJob job;
  const auto assignment = job.node->wait_for<Assignment>();
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->store_address, "10.0.0.1:6768");
  EXPECT_EQ(assignment->world->nodes_size(), 1);
  job.node->finish();
  const auto verdict = job.node->wait_for<Verdict>();
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(succeeded(*verdict));
}

TEST(LocalTransport, FailedRank_IsTheVerdictInItsOrder) {
  LocalJob job;
  ASSERT_TRUE(job.node->wait_for<Assignment>());
  RankExit exit;
  exit.set_code(7);
  job.node->report(exit);
  job.node->finish();
  const auto verdict = job.node->wait_for<Verdict>();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind(), Verdict::RANK_FAILED);
  EXPECT_EQ(verdict->exit().code(), 7);
}

TEST(LocalTransport, NodeThatOnlyLeaves_EndsItsSession) {
  LocalJob job;
  ASSERT_TRUE(job.node->wait_for<Assignment>());
  job.node->client->leave();
  job.host->shut_down(kSoon);  // returns: no session is left to drain
}

TEST(LocalTransport, HostShutsDown_NodeLearnsThatItWasLost) {
  LocalJob job;
  ASSERT_TRUE(job.node->wait_for<Assignment>());
  job.host->shut_down(std::chrono::milliseconds(0));
  const auto verdict = job.node->wait_for<Verdict>();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind(), Verdict::NODE_LOST);
}

TEST(LocalTransport, NodeDestroyedWhileTheJobForms_LeavesTheHostAlone) {
  LocalJob job(job_of({"10.0.0.1", "10.0.0.2"}));
  job.node.reset();
  // The host still answers.
  const auto other = job.make_node();
  JobSpec wrong = job_of({"10.0.0.1", "10.0.0.2"});
  wrong.config.set_nnodes(3);
  other->client->start(node_of(wrong, "10.0.0.2"));
  EXPECT_TRUE(other->wait_for<Refusal>());
  job.host->shut_down(kSoon);
}

TEST(LocalTransport, MismatchedNode_IsRefused) {
  LocalJob job(job_of({"10.0.0.1", "10.0.0.2"}));
  const auto other = job.make_node();
  JobSpec wrong = job_of({"10.0.0.1", "10.0.0.2"});
  wrong.config.set_nnodes(3);
  other->client->start(node_of(wrong, "10.0.0.2"));
  const auto refusal = other->wait_for<Refusal>();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->error.code(), ErrorCode::kUsage);
}

// Receives nothing until it is released.
struct BlockedOwner : NodeStreamOwner {
  void on_message(NodeStream*, wire::HostMessage) override { released.wait(); }
  void on_stream_end(NodeStream*, const StreamEnd&) override { ended.set_value(); }

  std::promise<void> release, ended;
  std::shared_future<void> released{release.get_future()};
};

TEST(LocalTransport, MessagesThatNobodyTakes_EndTheStream) {
  const JobSpec spec = job_of({"10.0.0.1", "10.0.0.2"});
  const auto host = std::make_shared<JobHost>(spec, JobTimes{}, "10.0.0.1:6768", nullptr);
  const auto owner = std::make_shared<BlockedOwner>();
  wire::NodeMessage join, failure;
  *join.mutable_join() = node_of(spec, "10.0.0.1");
  failure.mutable_failure()->set_how(std::string(1 << 20, 'x'));
  NodeStream* stream = make_local_transport(host)(owner, join);
  for (size_t sent = 0; sent <= kMaxUnsentBytes + (1 << 20); sent += 1 << 20) stream->send(failure);
  owner->release.set_value();
  EXPECT_EQ(owner->ended.get_future().wait_for(kSoon), std::future_status::ready);
  host->shut_down(kSoon);
}

TEST(LocalTransport, InvalidMessage_IsRefused) {
  struct Owner : NodeStreamOwner {
    void on_message(NodeStream*, wire::HostMessage message) override {
      if (message.has_refused()) refused.set_value(message.refused().code());
    }
    void on_stream_end(NodeStream*, const StreamEnd&) override { ended.set_value(); }
    std::promise<wire::Failure::Code> refused;
    std::promise<void> ended;
  };
  const auto host = std::make_shared<JobHost>(job_of(2), JobTimes{}, "10.0.0.1:6768", nullptr);
  const auto owner = std::make_shared<Owner>();
  make_local_transport(host)(owner, wire::NodeMessage());
  auto refused = owner->refused.get_future();
  ASSERT_EQ(refused.wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(refused.get(), wire::Failure::USAGE);
  EXPECT_EQ(owner->ended.get_future().wait_for(kSoon), std::future_status::ready);
  host->shut_down(kSoon);
}

TEST(JobHost, StoreGet_IsAnsweredByALaterSet) {
  LocalJob job;
  ASSERT_TRUE(job.node->wait_for<Assignment>());
  wire::GetRequest get;
  *get.mutable_caller() = caller();
  get.set_key("key");
  get.set_timeout_ms(60'000);
  KvState::Ticket ticket = 0;
  std::string found;
  job.host->get(get, &ticket, [&](KvState::Answer answer) { found = answer.value; });
  EXPECT_NE(ticket, 0u);
  wire::SetRequest set;
  *set.mutable_caller() = caller();
  set.set_key("key");
  set.set_value("value");
  EXPECT_FALSE(job.host->set(set));
  EXPECT_EQ(found, "value");
  EXPECT_FALSE(job.host->cancel(ticket));
}

TEST(JobHost, CallerOfAnotherJob_IsRefusedByTheStore) {
  LocalJob job;
  ASSERT_TRUE(job.node->wait_for<Assignment>());
  wire::SetRequest set;
  *set.mutable_caller() = caller();
  set.mutable_caller()->set_job_id("other");
  const auto error = job.host->set(set);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace fleet
