// Connecting over the network: refusals, and clients that are none of ours.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "ps/transport/grpc_stream.h"
#include "tests/engine/ps/ends.h"
#include "tests/errors.h"
#include "transport/grpc_setup.h"
#include "transport/tcp_listener.h"

namespace fleet::ps {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TransportOptions with_secret(const std::string& secret) {
  TransportOptions options;
  if (!secret.empty()) options.security = {secret, true, "this test"};
  return options;
}

Error connection_error(const std::string& address, const TransportOptions& options,
                       milliseconds timeout = kBound) {
  Recorder handler;
  return thrown_by([&] { connect(address, handler, options, timeout); });
}

TEST(Connect, SecretsDiffer_IsRefusedByName) {
  const std::string a = "the secret of server", b = "the secret of trainer";
  for (const auto& [ours, theirs] :
       {std::pair(a, b), std::pair(a, std::string()), std::pair(std::string(), b)}) {
    Recorder handler;
    const auto listener = listen("127.0.0.1:0", handler, with_secret(ours));
    const Error error = connection_error(listener->address(), with_secret(theirs));
    EXPECT_THAT(error, IsUsageError(listener->address()));
    EXPECT_THAT(error.next(), HasSubstr("secret"));
    EXPECT_EQ(handler.opened_count(), 0u);
  }
}

TEST(Connect, NobodyListens_TimesOutNamingTheAddress) {
  std::string address;
  {
    Recorder handler;
    address = listen("127.0.0.1:0", handler, {})->address();
  }
  EXPECT_THAT(connection_error(address, {}, milliseconds(250)),
              IsError(ErrorCode::kTimeout, address));
}

TEST(Connect, ServerDoesNotAnswer_TimesOutNamingTheAddress) {
  const TcpListeners silent = listen_tcp("127.0.0.1", 0, milliseconds(0));
  const std::string address = "127.0.0.1:" + std::to_string(silent.port);
  EXPECT_THAT(connection_error(address, {}, milliseconds(250)),
              IsError(ErrorCode::kTimeout, address));
}

TEST(Connect, OtherServiceOfGrpc_IsRefusedByName) {
  grpc::CallbackGenericService other;
  grpc::ServerBuilder builder;
  int port = 0;
  set_up_grpc();
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&other);
  const auto server = builder.BuildAndStart();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  EXPECT_THAT(connection_error(address, {}), IsUsageError(address));
}

TEST(Connect, ServerStartsLater_Connects) {
  Recorder server, client;
  auto held = listen_tcp("127.0.0.1", 0, milliseconds(0));  // nobody else gets the port
  const std::string address = "127.0.0.1:" + std::to_string(held.port);
  std::shared_ptr<Connection> connection;
  std::thread connecting([&] { connection = connect(address, client, {}, kBound); });
  held.sockets.clear();
  const auto listener = listen(address, server, {});
  connecting.join();
  EXPECT_TRUE(connection->disconnect(kBound));
}

TEST(Connect, SharedMemoryOnBothSidesOnly_IsUsed) {
  for (const auto& [ours, theirs] :
       {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    Recorder server, client;
    TransportOptions of_server, of_client;
    of_server.shared_memory = ours;
    of_client.shared_memory = theirs;
    const auto listener = listen("127.0.0.1:0", server, of_server);
    const auto connection = connect(listener->address(), client, of_client, kBound);
    EXPECT_EQ(connection->transport(), ours && theirs ? "shm" : "grpc");
    EXPECT_TRUE(connection->disconnect(kBound));
  }
}

TEST(Listen, PortInUse_IsRefusedByName) {
  Recorder handler;
  const auto listener = listen("127.0.0.1:0", handler, {});
  EXPECT_THAT(thrown_by([&] { listen(listener->address(), handler, {}); }),
              IsUsageError(listener->address()));
}

TEST(Listen, NoAddress_IsRefused) {
  Recorder handler;
  for (const char* address : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"}) {
    EXPECT_THAT(thrown_by([&] { listen(address, handler, {}); }), IsUsageError(address));
  }
}

TEST(Listen, AllAddresses_TellsOneToConnectTo) {
  Recorder server, client;
  const auto listener = listen("0.0.0.0:0", server, {});
  EXPECT_TRUE(connect(listener->address(), client, {}, kBound)->disconnect(kBound));
}

// A server with a connection of ours, which goes on whatever strangers do.
class Strangers : public testing::TestWithParam<Way> {
 protected:
  ~Strangers() override {
    ends_.client->send(message_of(pattern(1000, 1), 42));
    EXPECT_EQ(ends_.server_handler.wait_for_messages(1)[0].message.header.sequence, 42u);
    EXPECT_EQ(ends_.server_handler.opened_count(), 1u);
    EXPECT_EQ(ends_.server_handler.message_count(), 1u);
  }
  int port() const {
    const std::string address = ends_.listener->address();
    return std::stoi(address.substr(address.rfind(':') + 1));
  }
  Ends ends_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Ways, Strangers, testing::Values(Way::kGrpc, Way::kTls, Way::kShm),
                         [](const auto& way) { return name_of(way.param); });

TEST_P(Strangers, Noise_IsIgnored) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string noise = "GET / HTTP/1.1\r\n\r\n" + std::string(1000, '\xff');
  ASSERT_EQ(::send(fd.get(), noise.data(), noise.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(noise.size()));
  char answer[64];
  while (::read(fd.get(), answer, sizeof answer) > 0) {
  }
}

// A call of ours with these bytes; returns its status.
class NoisyCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  grpc::Status run(const std::string& address, const Security& security, const std::string& version,
                   std::string_view bytes) {
    grpc::GenericStub stub(make_bulk_channel(address, security));
    context_.AddMetadata(kVersionKey, version);
    const grpc::Slice slice(bytes.data(), bytes.size());
    out_ = grpc::ByteBuffer(&slice, 1);
    stub.PrepareBidiStreamingCall(&context_, kStreamMethod, {}, this);
    StartWrite(&out_);
    StartRead(&in_);
    StartCall();
    const MutexLock lock(mutex_);
    while (!done_) changed_.wait(mutex_);
    return status_;
  }
  void OnDone(const grpc::Status& status) override {
    const MutexLock lock(mutex_);
    status_ = status;
    done_ = true;
    changed_.notify_all();
  }

 private:
  grpc::ClientContext context_;
  grpc::ByteBuffer in_, out_;
  Mutex mutex_;
  CondVar changed_;
  bool done_ FLEET_GUARDED_BY(mutex_) = false;
  grpc::Status status_ FLEET_GUARDED_BY(mutex_);
};

std::string version() { return std::to_string(kProtocolVersion); }

TEST_P(Strangers, CallWithoutFrames_IsEnded) {
  const FrameHeader message{.kind = FrameKind::kMessage};
  const std::string first(reinterpret_cast<const char*>(&message), sizeof message);
  for (const std::string& bytes : {std::string(100, '\xff'), first}) {
    NoisyCall call;
    EXPECT_FALSE(
        call.run(ends_.listener->address(), options_of(GetParam()).security, version(), bytes)
            .ok());
  }
}

TEST_P(Strangers, OtherVersion_IsRefused) {
  NoisyCall call;
  const grpc::Status status =
      call.run(ends_.listener->address(), options_of(GetParam()).security, "0", "x");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace fleet::ps
