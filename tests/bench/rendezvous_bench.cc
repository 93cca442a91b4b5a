// Cost of a job's rendezvous, cold (a process of its own each time) against gRPC alone in
// the same run: listening and one unary call; and how joins and barriers of many nodes scale,
// against as many connections and unary calls.
// Links: rendezvous
//
// bench_rendezvous [NODES [ROUNDS]]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"
#include "rendezvous/store_client.h"
#include "tests/bench/times.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

wire::Join node_of(const JobSpec& job, int number) {
  wire::Join join = join_for(job.config);
  join.set_hosts_rendezvous(number == 0);
  wire::Node& node = *join.mutable_node();
  node.set_address("10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1));
  node.set_hostname("host" + std::to_string(number));
  for (int rank = 0; rank < 8; ++rank) add_rank(&node, {rank}, 6070 + rank);
  return join;
}

// Counts verdicts and assignments of many clients.
struct Heard {
  std::mutex mutex;
  std::condition_variable changed;
  int assigned = 0, ended = 0;
  void operator()(const RendezvousEvent& event) {
    std::lock_guard lock(mutex);
    assigned += std::holds_alternative<Assignment>(event);
    const auto* message = std::get_if<wire::HostMessage>(&event);
    ended += std::holds_alternative<Refusal>(event) || (message && message->has_verdict());
    changed.notify_all();
  }
  void wait(int Heard::*what, int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return this->*what >= count; });
  }
};

// One process' whole rendezvous, times on standard output: listen, join, finish to verdict, end.
int cold_job() {
  auto begin = Clock::now();
  RendezvousServer server({});
  std::printf("%f ", ms_since(begin));
  Heard heard;
  begin = Clock::now();
  const auto client = RendezvousClient::make({server.local_address()}, std::ref(heard));
  client->join(node_of({}, 0));
  std::printf("%f ", ms_since(begin));
  begin = Clock::now();
  client->send(envelope(&wire::NodeMessage::mutable_finished));
  heard.wait(&Heard::ended, 1);
  std::printf("%f ", ms_since(begin));
  begin = Clock::now();
  client->leave();
  server.stop();
  std::printf("%f\n", ms_since(begin));
  std::fflush(stdout);
  _exit(0);
}

// gRPC alone, for the same: listen, first call, second call, end.
int cold_grpc() {
  class Service : public wire::Rendezvous::Service {
    grpc::Status Describe(grpc::ServerContext*, const wire::DescribeRequest*,
                          wire::DescribeReply*) override {
      return grpc::Status::OK;
    }
  } service;
  auto begin = Clock::now();
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  auto server = builder.BuildAndStart();
  std::printf("%f ", ms_since(begin));
  auto stub = wire::Rendezvous::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 2; ++i) {
    begin = Clock::now();
    grpc::ClientContext context;
    wire::DescribeReply reply;
    if (!stub->Describe(&context, {}, &reply).ok()) return 1;
    std::printf("%f ", ms_since(begin));
  }
  begin = Clock::now();
  server->Shutdown();
  std::printf("%f\n", ms_since(begin));
  std::fflush(stdout);
  _exit(0);
}

// Medians of the columns that `rounds` processes of this program print.
std::vector<double> cold(const std::string& what, int rounds) {
  std::vector<std::vector<double>> columns(4);
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) std::exit(1);
  for (int i = 0; i < rounds; ++i) {
    FILE* from = popen((std::string(self) + " " + what).c_str(), "r");
    for (auto& column : columns) {
      double value = 0;
      if (std::fscanf(from, "%lf", &value) == 1) column.push_back(value);
    }
    pclose(from);
  }
  std::vector<double> medians;
  for (auto& column : columns) medians.push_back(median(column));
  return medians;
}

void many(int nodes) {
  RendezvousServerOptions options;
  options.job.config.set_nnodes(nodes);
  RendezvousServer server(options);
  Heard heard;
  std::vector<std::shared_ptr<RendezvousClient>> clients;
  auto begin = Clock::now();
  for (int i = 0; i < nodes; ++i) {
    clients.push_back(RendezvousClient::make({server.local_address()}, std::ref(heard)));
    clients.back()->start(node_of(options.job, i));
  }
  heard.wait(&Heard::assigned, nodes);
  const double join = ms_since(begin);

  std::vector<std::shared_ptr<Store>> stores;
  for (int i = 0; i < nodes; ++i) {
    stores.push_back(connect_store(server.local_address(), "default", 1, i));
  }
  const auto each = [&](auto call) {
    const auto start = Clock::now();
    std::vector<Thread> threads;
    for (auto& store : stores) threads.emplace_back("rank", [&] { call(*store); });
    for (auto& thread : threads) thread.join();
    return ms_since(start);
  };
  const double connect = each([](Store& store) { store.add("connect", 1); });
  const double calls = each([](Store& store) { store.add("n", 1); });
  const double barrier = each([&](Store& store) {
    store_barrier(store, "b", static_cast<int>(stores.size()), std::chrono::seconds(60));
  });
  begin = Clock::now();
  for (auto& client : clients) client->send(envelope(&wire::NodeMessage::mutable_finished));
  heard.wait(&Heard::ended, nodes);
  const double verdict = ms_since(begin);
  begin = Clock::now();
  for (auto& client : clients) client->leave();
  server.stop();
  std::printf(
      "%4d nodes x 8 ranks: join %.1f ms = %.2f x as many connections with one call each (%.1f "
      "ms); "
      "barrier %.1f ms = %.2f x as many calls (%.1f ms); verdict %.1f ms; end %.1f ms\n",
      nodes, join, join / connect, connect, barrier, barrier / calls, calls, verdict,
      ms_since(begin));
}

int run(int nodes, int rounds) {
  const auto grpc = cold("grpc", rounds), job = cold("job", rounds);
  std::printf(
      "gRPC alone: listen %.2f ms, first call %.2f, second %.2f, shut down %.2f\n"
      "rendezvous: listen %.2f ms (%.2fx), join %.2f (%.2fx a first call), finish to verdict %.2f "
      "(%.2fx a second), leave and stop %.2f\n",
      grpc[0], grpc[1], grpc[2], grpc[3], job[0], job[0] / grpc[0], job[1], job[1] / grpc[1],
      job[2], job[2] / grpc[2], job[3]);
  for (int count = 1; count < nodes; count *= 4) many(count);
  many(nodes);
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "256";
  if (first == "job") return fleet::cold_job();
  if (first == "grpc") return fleet::cold_grpc();
  return fleet::run(std::atoi(first.c_str()), argc > 2 ? std::atoi(argv[2]) : 21);
}
