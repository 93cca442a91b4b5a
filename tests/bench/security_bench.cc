// Cost of securing a connection, against a plain one in the same run: certificates, connecting
// (16 at a time, one call each, both ends in this process), and calls.
// Links: rendezvous
//
// bench_security [CHANNELS [CALLS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "proto/control.grpc.pb.h"
#include "rendezvous/server.h"
#include "tests/bench/times.h"
#include "transport/certificates.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

struct Way {
  const char* name;
  Security security;
};

// Connections a second, each with its first call.
double connect_rate(const std::string& address, const Security& security, int channels) {
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = thread; i < channels; i += 16) {
        const auto stub = wire::Rendezvous::NewStub(make_channel(address, security));
        grpc::ClientContext context;
        wire::DescribeReply reply;
        const grpc::Status status = stub->Describe(&context, {}, &reply);
        if (!status.ok()) std::fprintf(stderr, "%s\n", reason_of(status).c_str());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return channels / ms_since(begin) * 1000;
}

double call_us(const std::string& address, const Security& security, int calls) {
  const auto stub = wire::Rendezvous::NewStub(make_channel(address, security));
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const auto begin = Clock::now();
    grpc::ClientContext context;
    wire::DescribeReply reply;
    (void)stub->Describe(&context, {}, &reply);
    times.push_back(ms_since(begin) * 1000);
  }
  return median(times);
}

void run(int channels, int calls) {
  const std::string secret = new_secret();
  std::vector<double> issue;
  for (int i = 0; i < 101; ++i) {
    const auto begin = Clock::now();
    (void)issue_certificates(secret);
    issue.push_back(ms_since(begin));
  }
  std::printf("a certificate: %.2f ms (the first, with OpenSSL's start: %.2f ms)\n", median(issue),
              issue[0]);
  const Way ways[] = {{"plain", {}}, {"mutual TLS", {secret, true, {}}}};
  constexpr int kRounds = 5;
  std::vector<double> rates[2], times[2];
  for (int round = 0; round <= kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      RendezvousServerOptions options;
      options.security = ways[i].security;
      RendezvousServer server(options);
      const std::string address = server.local_address();
      const double rate = connect_rate(address, ways[i].security, channels);
      const double us = call_us(address, ways[i].security, calls);
      if (round == 0) continue;  // warming up
      rates[i].push_back(rate);
      times[i].push_back(us);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const double rate = median(rates[i]), us = median(times[i]);
    std::printf("%-10s  %6.0f connections/s (%.2f x plain)  %6.1f us a call (%.2f x plain)\n",
                ways[i].name, rate, rate / median(rates[0]), us, us / median(times[0]));
  }
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::run(argc > 1 ? std::atoi(argv[1]) : 500, argc > 2 ? std::atoi(argv[2]) : 2000);
}
