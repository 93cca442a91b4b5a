// A rendezvous that wants its secret, and who has another one or none.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/store_client.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/certificates.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

using ::testing::AllOf;

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

RendezvousServerOptions guarded() {
  RendezvousServerOptions options;
  options.security = {new_secret(), true, "a test"};
  return options;
}

UniqueFd connect_to_port(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

class Guarded : public testing::Test {
 protected:
  RunningJob job_{2, guarded()};
};

TEST_F(Guarded, NodesAndRanksWithTheSecret_WorkTogether) {
  const auto store = connect_store(job_.server->local_address(), "default", 1, 0, job_.security);
  store->set("key", "value");
  EXPECT_EQ(store->get("key", kSoon), "value");
  for (auto& node : job_.nodes) node->finish();
  EXPECT_TRUE(succeeded(job_.nodes[1]->wait_for<Verdict>().value()));
}

TEST_F(Guarded, StoreOfAStranger_IsRefused) {
  const std::string address = job_.server->local_address();
  for (const Security& theirs : {Security{}, Security{new_secret(), true, {}}}) {
    const auto store = connect_store(address, "default", 1, 0, theirs);
    const Error error = error_of([&] { store->set("key", "value"); });
    EXPECT_THAT(error.code(), AnyOf(ErrorCode::kUsage, ErrorCode::kPeerLost)) << error.what();
  }
}

// A node that tries to join, and how it is refused.
Error refusal(const std::string& address, const Security& theirs) {
  TestNode node(address, kSoon, kSoon, theirs);
  node.client->start(node_of(job_of({"10.0.0.1", "10.0.0.2"}), "10.0.0.2"));
  return node.wait_for<Refusal>().value().error;
}

TEST(Join, WithoutTheSecret_IsRefusedWithTheReason) {
  RendezvousServerOptions options = guarded();
  options.job = job_of({"10.0.0.1", "10.0.0.2"});
  const RendezvousServer server(options);
  const Error other = refusal(server.local_address(), {new_secret(), true, "a file"});
  EXPECT_EQ(other.code(), ErrorCode::kUsage);
  EXPECT_THAT(other.what(), HasSubstr(", from a file) is not the job's (" +
                                      secret_id(options.security.secret) + ")"));
  EXPECT_THAT(other.what(), Not(HasSubstr(options.security.secret)));
  EXPECT_THAT(refusal(server.local_address(), {}).what(),
              AllOf(HasSubstr("requires the job's secret"), HasSubstr("--insecure")));
}

TEST(Join, WithTlsToAPlainHost_IsRefusedWithTheReason) {
  RendezvousServerOptions options;
  options.job = job_of({"10.0.0.1", "10.0.0.2"});
  const RendezvousServer server(options);
  EXPECT_THAT(refusal(server.local_address(), {new_secret(), true, "a file"}).what(),
              AllOf(HasSubstr("it has no TLS"), HasSubstr("--insecure")));
}

// A call of an unauthenticated TLS client that even knows the job's authority.
grpc::Status call_with(const std::string& address, const std::string& authority,
                       const Certificates& own) {
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kCertificateName);
  const auto stub = wire::Rendezvous::NewStub(grpc::CreateCustomChannel(
      address, grpc::SslCredentials({authority, own.key, own.chain}), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSoon);
  wire::DescribeReply reply;
  return stub->Describe(&context, {}, &reply);
}

TEST(Server, CertificateOfAnotherSecretOrNone_IsRefused) {
  const RendezvousServerOptions options = guarded();
  const RunningJob job(1, options);
  const std::string address = job.server->local_address();
  const Certificates ours = issue_certificates(options.security.secret);
  EXPECT_TRUE(call_with(address, ours.authority, ours).ok());
  EXPECT_EQ(call_with(address, ours.authority, {}).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(call_with(address, ours.authority, issue_certificates(new_secret())).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST(Server, NoiseAndSilentConnections_AreClosedAndDisturbNobody) {
  for (const bool tls : {false, true}) {
    RendezvousServerOptions options = tls ? guarded() : RendezvousServerOptions();
    options.handshake_timeout = std::chrono::milliseconds(500);
    RunningJob job(2, options);
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(connect_to_port(job.server->port()));
    const UniqueFd noisy = connect_to_port(job.server->port());
    const std::string noise = "GET / HTTP/1.1\r\n\r\n" + std::string(100'000, '\xff');
    EXPECT_GT(::send(noisy.get(), noise.data(), noise.size(), MSG_NOSIGNAL), 0);
    const auto store = connect_store(job.server->local_address(), "default", 1, 0, job.security);
    store->set("key", "value");
    // read() ends when the server has closed; the test's own limit is the bound.
    char byte;
    for (const UniqueFd& fd : silent) {
      while (::read(fd.get(), &byte, 1) > 0) {
      }
    }
    EXPECT_EQ(store->get("key", kSoon), "value");
    for (auto& node : job.nodes) node->finish();
    EXPECT_TRUE(succeeded(job.nodes[0]->wait_for<Verdict>().value()));
  }
}

}  // namespace
}  // namespace fleet
