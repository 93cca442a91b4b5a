#include "diagnosis/server_times.h"

#include <gmock/gmock.h>

#include <random>

#include "diagnosis/bottleneck.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using wire::Bottleneck;
using wire::Cause;

constexpr double kNsPerMs = 1e6;

// A healthy job: 100 ms a step, in which servers answer within 6 ms and compute for 2 ms.
struct Job {
  std::vector<RankTimes> trainers;
  std::vector<ServerTimes> servers;

  Job(int trainer_count, int server_count) {
    for (int s = 0; s < server_count; ++s) {
      servers.push_back({.server = s,
                         .local_rank = s,
                         .address = "10.0.0." + std::to_string(s) + ":6170",
                         .busy = 0.02,
                         .received = 1e6});
    }
    for (int t = 0; t < trainer_count; ++t) {
      trainers.push_back({.rank = t,
                          .local_rank = server_count + t,
                          .step = 100 * kNsPerMs,
                          .input = 1 * kNsPerMs,
                          .exposed = 6 * kNsPerMs,
                          .exchange = 6 * kNsPerMs,
                          .cores = 4});
      trainers.back().answers.assign(static_cast<size_t>(server_count), 6 * kNsPerMs);
    }
  }
  // Every trainer waits longer for this server.
  void slow_down(int server, double ns) {
    for (RankTimes& one : trainers) {
      one.answers[static_cast<size_t>(server)] += ns;
      one.exposed = *one.exposed + ns;
      one.exchange += ns;
      one.step += ns;
    }
  }
  // All servers compute longer.
  void fill(double ns) {
    for (int s = 0; s < static_cast<int>(servers.size()); ++s) {
      for (RankTimes& one : trainers) one.answers[static_cast<size_t>(s)] += ns;
    }
    for (RankTimes& one : trainers) {
      one.exposed = *one.exposed + ns;
      one.exchange += ns;
      one.step += ns;
    }
    for (ServerTimes& one : servers) one.busy = (2 * kNsPerMs + ns) / trainers[0].step;
  }
  // In sync, the others wait for this trainer, through all servers.
  void slow_trainer(int trainer, double ns) {
    for (int t = 0; t < static_cast<int>(trainers.size()); ++t) {
      RankTimes& one = trainers[static_cast<size_t>(t)];
      one.step += ns;
      if (t == trainer) continue;
      one.exposed = *one.exposed + ns;
      one.exchange += ns;
      for (double& answer : one.answers) answer += ns;
    }
  }
  Bottleneck found(int nnodes = 1) const {
    return find_bottleneck(trainers, nnodes, servers).value();
  }
};

TEST(ServerCauses, HealthyJob_HasNone) {
  for (const int servers : {1, 2, 5}) {
    EXPECT_TRUE(Job(4, servers).found().causes().empty()) << servers;
    EXPECT_TRUE(Job(1, servers).found().causes().empty()) << servers;
  }
}

TEST(ServerCauses, SlowServer_IsNamedWithItsAddress) {
  for (const int count : {2, 3, 8}) {
    Job job(4, count);
    job.slow_down(1, 60 * kNsPerMs);
    const Bottleneck found = job.found();
    ASSERT_EQ(found.causes_size(), 1) << count;
    EXPECT_EQ(found.causes(0).kind(), Cause::SERVER);
    EXPECT_EQ(found.causes(0).server(), 1);
    EXPECT_FALSE(found.causes(0).has_rank());
    EXPECT_NEAR(found.causes(0).share(), 60.0 / 160, 1e-9);
    EXPECT_THAT(found.line(), HasSubstr("server 1 at 10.0.0.1:6170 on node 0"));
  }
}

TEST(ServerCauses, ReasonOfASlowServer_IsInItsAction) {
  Job job(2, 3);
  job.slow_down(2, 60 * kNsPerMs);
  job.servers[2].received = 2e6;
  EXPECT_THAT(job.found().causes(0).action(), HasSubstr("200 % of the bytes"));
  job.servers[2].delayed = 0.4;
  EXPECT_THAT(job.found().causes(0).action(), HasSubstr("no core for 40 %"));
  job.servers[2].throttled = true;
  EXPECT_THAT(job.found().causes(0).action(), HasSubstr("CPU quota"));
}

TEST(ServerCauses, BusyServers_AreTooFew) {
  for (const int count : {1, 2, 4}) {
    Job job(4, count);
    job.fill(80 * kNsPerMs);
    const Bottleneck found = job.found();
    ASSERT_EQ(found.causes_size(), 1) << count;
    EXPECT_EQ(found.causes(0).kind(), Cause::SERVER);
    EXPECT_EQ(found.causes(0).has_server(), count == 1);
    EXPECT_THAT(found.causes(0).action(), HasSubstr("--server_num"));
  }
}

TEST(ServerCauses, IdleServersThatTrainersWaitFor_AreTheNetwork) {
  Job job(4, 2);
  job.fill(80 * kNsPerMs);
  for (ServerTimes& one : job.servers) one.busy = 0.02;
  const Bottleneck found = job.found(2);
  ASSERT_EQ(found.causes_size(), 1);
  EXPECT_EQ(found.causes(0).kind(), Cause::COMMUNICATION);
}

TEST(ServerCauses, SlowTrainerInSync_StaysTheStraggler) {
  Job job(3, 2);
  job.slow_trainer(2, 60 * kNsPerMs);
  const Bottleneck found = job.found();
  ASSERT_EQ(found.causes_size(), 1);
  EXPECT_EQ(found.causes(0).kind(), Cause::STRAGGLER);
  EXPECT_EQ(found.causes(0).rank(), 2);
}

// Trainers that run apart keep a server busy for others while they compute.
TEST(ServerCauses, HalfBusyServersApart_AreNotTooFew) {
  Job job(4, 2);
  job.fill(30 * kNsPerMs);
  for (ServerTimes& one : job.servers) one.busy = 0.4, one.apart = true;
  ASSERT_EQ(job.found().causes_size(), 1);
  EXPECT_EQ(job.found().causes(0).kind(), Cause::COMMUNICATION);
  for (ServerTimes& one : job.servers) one.busy = 0.9;
  EXPECT_EQ(job.found().causes(0).kind(), Cause::SERVER);
}

// Times as measured: each differs by up to a fifth.
TEST(ServerCauses, InjectedTimes_AreFoundTenOfTen) {
  std::mt19937 random(11);
  const auto vary = [&](double value) {
    return value * std::uniform_real_distribution<>(0.9, 1.1)(random);
  };
  for (int run = 0; run < 10; ++run) {
    for (const int kind : {0, 1, 2, 3}) {
      const int trainers = std::uniform_int_distribution<>(2, 8)(random);
      const int servers = std::uniform_int_distribution<>(2, 6)(random);
      Job job(trainers, servers);
      for (RankTimes& one : job.trainers) {
        for (double& answer : one.answers) answer = vary(answer);
        one.input = vary(one.input);
      }
      const int slow = std::uniform_int_distribution<>(0, std::min(trainers, servers) - 1)(random);
      const double time = std::uniform_real_distribution<>(40, 200)(random) * kNsPerMs;
      if (kind == 0) job.slow_down(slow, time);
      if (kind == 1) job.fill(time);
      if (kind == 2) job.slow_trainer(slow, time);
      const Bottleneck found = job.found();
      const std::string where = "run " + std::to_string(run) + ", " + found.line();
      if (kind == 3) {
        EXPECT_TRUE(found.causes().empty()) << where;
        continue;
      }
      ASSERT_EQ(found.causes_size(), 1) << where;
      const Cause& cause = found.causes(0);
      EXPECT_EQ(cause.kind(), kind == 2 ? Cause::STRAGGLER : Cause::SERVER) << where;
      EXPECT_EQ(cause.has_server(), kind == 0) << where;
      EXPECT_EQ(kind == 0 ? cause.server() : slow, slow) << where;
      EXPECT_EQ(kind == 2 ? cause.rank() : slow, slow) << where;
    }
  }
}

// Second by second, as the reports come: the second of two servers answers late.
TEST(BottleneckAnalyzer, ReportsOfServers_NameTheSlowOne) {
  BottleneckAnalyzer analyzer;
  auto now = BottleneckAnalyzer::Time() + 1000s;
  analyzer.begin(1, now);
  for (int second = 1; second <= 30; ++second) {
    now += 1s;
    const int64_t ns = second * int64_t{1'000'000'000};
    StepReport reports;
    for (const int number : {0, 1}) {
      for (const bool is_server : {false, true}) {
        RankUsage* usage = reports.add_usage();
        usage->set_rank(number);
        usage->set_server(is_server);
        usage->set_at_ns(ns);
        usage->set_cores(1);
      }
      wire::ServerReport* server = reports.add_servers();
      server->set_rank(number);
      server->set_at_ns(ns);
      server->set_address("host:617" + std::to_string(number));
      server->set_pushes(20 * second);
      server->set_busy_ns(ns / 50);
      RankSteps* steps = reports.add_ranks();
      steps->set_rank(number);
      steps->set_steps(10 * second);
      steps->set_step_at_ns(ns);
      steps->set_step_ns(ns);
      steps->set_exposed_ns(ns / 2);
      steps->set_exchange_ns(ns / 2);
      steps->mutable_servers()->set_updates(10 * second);
      steps->mutable_servers()->add_answer_ns(ns / 20);
      steps->mutable_servers()->add_answer_ns(ns / 2);
    }
    analyzer.update(reports, now);
  }
  const auto found = analyzer.overall();
  ASSERT_TRUE(found && found->causes_size() == 1);
  EXPECT_EQ(found->causes(0).kind(), Cause::SERVER);
  EXPECT_EQ(found->causes(0).server(), 1);
  EXPECT_NEAR(found->causes(0).share(), 0.45, 1e-6);
  EXPECT_EQ(bottleneck_json(*found).at("causes").elements()[0].at("server").get<int>(), 1);
}

}  // namespace
}  // namespace fleet
