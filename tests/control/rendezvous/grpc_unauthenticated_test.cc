// Connections of clients that are not nodes of the job.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/store_client.h"
#include "tests/captured_log.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

class Unauthenticated : public testing::Test {
 protected:
  void expect_job_goes_on() {
    for (auto& node : job_.nodes) node->finish();
    EXPECT_TRUE(succeeded(job_.nodes[0]->wait_for<Verdict>().value()));
  }
  RunningJob job_{2};
  std::unique_ptr<wire::Rendezvous::Stub> stub_ =
      wire::Rendezvous::NewStub(make_channel(job_.server->local_address(), {}));
  grpc::ClientContext context_;
};

TEST_F(Unauthenticated, SpeaksWithoutJoining_IsIgnoredAndClosedInTheEnd) {
  auto stream = stub_->Session(&context_);
  wire::NodeMessage message;
  message.mutable_exit()->set_code(1);
  stream->Write(message);
  message.mutable_finished();
  stream->Write(message);
  message.mutable_stop()->set_signal(9);
  stream->Write(message);
  wire::HostMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.has_refused());
  EXPECT_FALSE(stream->Read(&answer));
  expect_job_goes_on();
}

TEST_F(Unauthenticated, JoinTooLarge_EndsItsStreamOnly) {
  auto stream = stub_->Session(&context_);
  wire::NodeMessage message;
  message.mutable_join()->mutable_node()->set_hostname(std::string(kMaxMessageBytes - 1000, 'x'));
  stream->Write(message);
  wire::HostMessage answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.has_refused());
  grpc::ClientContext second;
  stream = stub_->Session(&second);
  message.mutable_join()->mutable_node()->set_hostname(std::string(kMaxMessageBytes + 1000, 'x'));
  stream->Write(message);
  EXPECT_FALSE(stream->Read(&answer));
  expect_job_goes_on();
}

// A connection that has sent nothing yet; none if the server has turned it away. It does so by a
// reset, and on a busy machine that comes before connect() has returned.
UniqueFd try_silent_connection(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  EXPECT_THAT(errno, testing::AnyOf(ECONNRESET, ECONNABORTED));
  return UniqueFd();
}

// The same, of a server that has room for it.
UniqueFd silent_connection(int port) {
  UniqueFd fd = try_silent_connection(port);
  EXPECT_TRUE(fd) << "the server has turned it away";
  return fd;
}

TEST_F(Unauthenticated, NoGrpcAtAll_IsIgnored) {
  const UniqueFd fd = silent_connection(job_.server->port());
  const std::string noise = "GET / HTTP/1.1\r\n\r\n" + std::string(1000, '\xff');
  ASSERT_EQ(write(fd.get(), noise.data(), noise.size()), static_cast<ssize_t>(noise.size()));
  char answer[64];
  while (read(fd.get(), answer, sizeof answer) > 0) {
  }
  expect_job_goes_on();
}

// Every address has eight connections that have not shown the secret, for good.
RendezvousServerOptions few_unauthenticated(const std::string& host) {
  RendezvousServerOptions options;
  options.host = host;
  options.security = {new_secret(), true, "a test"};
  // One more each hour: the oldest does not make room for it within this test.
  options.unauthenticated_limits =
      ConnectionBudget::Limits{.burst = 8, .per_second = 0, .total = 8};
  return options;
}

class FewUnauthenticated : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Addresses, FewUnauthenticated, testing::Values("127.0.0.1", "::1", "::"),
                         [](const auto& host) {
                           const std::string text = host.param;
                           return text == "::" ? "All" : text == "::1" ? "Ipv6" : "Ipv4";
                         });

bool has_ipv6() {
  const UniqueFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

TEST_P(FewUnauthenticated, ManyConnectionsOneAfterAnotherWithTheSecret_AllGetIn) {
  const bool ipv6 = std::string(GetParam()).find(':') != std::string::npos;
  if (ipv6 && !has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  RunningJob job(2, few_unauthenticated(GetParam()));
  for (int i = 0; i < 30; ++i) {
    const auto store = connect_store(job.server->local_address(), "default", 1, 0, job.security);
    EXPECT_EQ(store->add("key", 1), i + 1);
  }
  for (auto& node : job.nodes) node->finish();
  EXPECT_TRUE(succeeded(job.nodes[0]->wait_for<Verdict>().value()));
}

TEST(Flood, OfSilentConnections_IsClosedAtOnceAndTheJobGoesOn) {
  RunningJob job(2, few_unauthenticated("127.0.0.1"));
  std::vector<UniqueFd> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(try_silent_connection(job.server->port()));
  // The last one is among those that are turned away: a reset, or the end.
  char byte;
  if (flood.back()) {
    EXPECT_LE(read(flood.back().get(), &byte, 1), 0);
  }
  // The first one is not: nothing has been said to it.
  ASSERT_TRUE(flood.front());
  EXPECT_EQ(recv(flood.front().get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  for (auto& node : job.nodes) node->finish();
  EXPECT_TRUE(succeeded(job.nodes[1]->wait_for<Verdict>().value()));
}

// Sends 256 MB over plain HTTP/2: `first`, then `again` and again. Stops if the server closes the
// connection.
void send_much(int port, const std::string& first, const std::string& again) {
  const UniqueFd fd = silent_connection(port);
  const std::string greeting("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  std::string bytes = greeting + first;
  size_t sent = 0;
  char answer[4096];
  while (sent < 256 << 20 && send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    sent += bytes.size();
    bytes = again;
    while (recv(fd.get(), answer, sizeof answer, MSG_DONTWAIT) > 0) {
    }
  }
}

// A CONTINUATION of 16,000 bytes without end, behind a HEADERS frame.
TEST(Flood, OfHeadersWithoutEnd_EndsWithALine) {
  RendezvousServerOptions options;
  options.max_growth = 64 << 20;
  const std::string headers("\0\0\1\1\0\0\0\0\1\x83", 10);
  const std::string more = std::string("\0\x3e\x80\x09\0\0\0\0\1", 9) + std::string(16'000, 'h');
  const std::string log = captured_log([&] {
    const RunningJob job(2, options);
    send_much(job.server->port(), headers, more);
  });
  EXPECT_THAT(log, testing::HasSubstr("is flooded"));
}

TEST_F(Unauthenticated, PingsWithoutEnd_AreIgnored) {
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += std::string("\0\0\x08\6\0\0\0\0\0", 9) + "12345678";
  send_much(job_.server->port(), "", pings);
  expect_job_goes_on();
}

}  // namespace
}  // namespace fleet
