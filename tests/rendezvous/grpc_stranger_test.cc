// What connects to a rendezvous and is no node of ours.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/wire.h"
#include "tests/rendezvous/grpc_nodes.h"

namespace fleet {
namespace {

class Stranger : public testing::Test {
 protected:
  void expect_job_goes_on() {
    for (auto& node : job_.nodes) node->client.finish();
    EXPECT_TRUE(job_.nodes[0]->wait_for<Verdict>().value().ok());
  }
  RunningJob job_{2};
  std::unique_ptr<wire::Rendezvous::Stub> stub_ =
      wire::Rendezvous::NewStub(make_channel(job_.server->local_address(), {}));
  grpc::ClientContext context_;
};

TEST_F(Stranger, SpeaksWithoutJoining_IsIgnoredAndClosedInTheEnd) {
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

TEST_F(Stranger, JoinTooLarge_EndsItsStreamOnly) {
  auto stream = stub_->Session(&context_);
  wire::NodeMessage message;
  message.mutable_join()->set_hostname(std::string(kMaxMessageBytes - 1000, 'x'));
  stream->Write(message);
  wire::HostMessage answer;
  EXPECT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(answer.has_refused());
  grpc::ClientContext second;
  stream = stub_->Session(&second);
  message.mutable_join()->set_hostname(std::string(kMaxMessageBytes + 1000, 'x'));
  stream->Write(message);
  EXPECT_FALSE(stream->Read(&answer));
  expect_job_goes_on();
}

TEST_F(Stranger, NoGrpcAtAll_IsIgnored) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(job_.server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string noise = "GET / HTTP/1.1\r\n\r\n" + std::string(1000, '\xff');
  ASSERT_EQ(write(fd.get(), noise.data(), noise.size()), static_cast<ssize_t>(noise.size()));
  char answer[64];
  while (read(fd.get(), answer, sizeof answer) > 0) {
  }
  expect_job_goes_on();
}

}  // namespace
}  // namespace fleet
