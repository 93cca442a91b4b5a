// Many threads at one host without a network: for scripts/check_races.sh, which runs it with the
// thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "rendezvous/job_host.h"
#include "tests/control/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

constexpr int kNodes = 4, kKeys = 50;

// A job of nodes that all live in the host's process.
struct ThreadedJob {
  ThreadedJob() {
    std::vector<std::string> addresses;
    for (int i = 0; i < kNodes; ++i) addresses.push_back("10.0.0." + std::to_string(i + 1));
    spec = job_of(addresses);
    host = std::make_shared<JobHost>(spec, JobTimes{}, "10.0.0.1:6768", nullptr);
    for (int i = 0; i < kNodes; ++i) {
      nodes.push_back(std::make_unique<TestNode>("10.0.0.1:6768", kSoon, kSoon, Security{}, host));
    }
  }
  // Runs work(node) on a thread for each node.
  template <typename Work>
  void on_each(Work work) {
    std::vector<Thread> threads;
    for (int i = 0; i < kNodes; ++i) threads.emplace_back("node", [&work, i] { work(i); });
  }
  void join(int node) {
    nodes[node]->client->start(node_of(spec, spec.config.addresses(node)));
    EXPECT_TRUE(nodes[node]->wait_for<Assignment>());
  }

  JobSpec spec;
  std::shared_ptr<JobHost> host;
  std::vector<std::unique_ptr<TestNode>> nodes;
};

wire::Caller first_generation() {
  wire::Caller caller;
  caller.set_job_id("default");
  caller.set_generation(1);
  return caller;
}

TEST(LocalNodesRace, StoreAndEndOfAJob_FromAThreadPerNode) {
  ThreadedJob job;
  std::atomic<int> answers = 0;
  job.on_each([&](int node) {
    job.join(node);
    for (int i = 0; i < kKeys; ++i) {
      // The neighbour's key, usually before it is set.
      wire::GetRequest get;
      *get.mutable_caller() = first_generation();
      get.set_key(std::to_string((node + 1) % kNodes) + "." + std::to_string(i));
      get.set_timeout_ms(60'000);
      KvState::Ticket ticket = 0;
      job.host->get(get, &ticket, [&](const KvState::Answer& answer) {
        if (answer.value == "value") ++answers;
      });
      wire::SetRequest set;
      *set.mutable_caller() = first_generation();
      set.set_key(std::to_string(node) + "." + std::to_string(i));
      set.set_value("value");
      EXPECT_FALSE(job.host->set(set));
      wire::AddRequest add;
      *add.mutable_caller() = first_generation();
      add.set_key("count");
      add.set_amount(1);
      EXPECT_FALSE(job.host->add(add).error);
    }
    job.nodes[node]->finish();
    const auto verdict = job.nodes[node]->wait_for<Verdict>();
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->kind(), Verdict::SUCCESS);
    job.nodes[node]->client->leave();
  });
  EXPECT_EQ(answers, kNodes * kKeys);
}

TEST(LocalNodesRace, FailuresWhileTheHostShutsDown_EveryNodeGetsAVerdict) {
  ThreadedJob job;
  job.on_each([&](int node) { job.join(node); });
  std::atomic<int> verdicts = 0;
  job.on_each([&](int node) {
    if (node == 0) {
      job.host->shut_down(kSoon);
    } else {
      RankExit exit;
      exit.set_code(7);
      job.nodes[node]->report(exit);
    }
    verdicts += job.nodes[node]->wait_for<Verdict>().has_value();
  });
  EXPECT_EQ(verdicts, kNodes);
}

TEST(LocalNodesRace, NodesLeaveWhileOthersJoin_TheHostEnds) {
  ThreadedJob job;
  job.on_each([&](int node) {
    job.nodes[node]->client->start(node_of(job.spec, job.spec.config.addresses(node)));
    if (node % 2) job.nodes[node]->client->leave();
  });
  job.host->shut_down(kSoon);
  EXPECT_TRUE((job.nodes[0]->hears_one_of<Verdict, Refusal>()));
}

}  // namespace
}  // namespace fleet
