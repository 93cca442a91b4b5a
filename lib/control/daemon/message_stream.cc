#include "daemon/message_stream.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/server_posix.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/protocol.h"
#include "transport/certificates.h"
#include "transport/connection_limiter.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

constexpr std::chrono::seconds kConnectionTimeout{3};
// The largest message of a client: a job's environment and list of nodes.
constexpr int kMaxRequestBytes = 4 << 20;
// By how much this process may grow without TLS.
constexpr int64_t kMaxGrowth = 512 << 20;

void make_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

// A failed read means that the client has disconnected or finished.
void ServerStream::OnReadDone(bool ok) { ok ? deliver() : close(); }

void ServerStream::cancel() {
  const MutexLock lock(mutex_);
  if (!over_) context_->TryCancel();
}

void ClientStream::OnReadDone(bool ok) {
  if (ok) return deliver();
  stop_writing();
  RemoveHold();
}

std::shared_ptr<ClientStream> ClientStream::start(EventLoop& loop, const std::string& address,
                                                  const Security& security,
                                                  wire::ClientMessage first,
                                                  StreamCallbacks<wire::FleetdMessage> callbacks) {
  return start(loop, make_channel(address, security), std::move(first), std::move(callbacks));
}

std::shared_ptr<ClientStream> ClientStream::start(EventLoop& loop,
                                                  const std::shared_ptr<grpc::Channel>& channel,
                                                  wire::ClientMessage first,
                                                  StreamCallbacks<wire::FleetdMessage> callbacks) {
  auto stream = std::make_shared<ClientStream>(loop);
  stream->stub_ = wire::Fleetd::NewStub(channel);
  stream->stub_->async()->Session(&stream->context_, stream.get());
  stream->AddHold();  // other threads may write until the last read
  stream->start_reading(std::move(callbacks));
  first.set_protocol(kFleetdProtocol);
  first.set_version(FLEET_VERSION);
  stream->send(std::move(first));
  stream->StartCall();
  return stream;
}

class StreamServer::Service final : public wire::Fleetd::CallbackService,
                                    public grpc::CallbackGenericService {
 public:
  Service(EventLoop& loop, std::function<void(std::shared_ptr<ServerStream>)> accept)
      : loop_(loop), accept_(std::move(accept)) {}

  grpc::ServerBidiReactor<wire::ClientMessage, wire::FleetdMessage>* Session(
      grpc::CallbackServerContext* context) override {
    auto stream = std::make_shared<ServerStream>(loop_, context);
    loop_.post([this, stream] { accept_(stream); });
    return stream.get();
  }
  // A client of another version calls a service of another name. With --via=ssh it shows the last
  // line of our standard error.
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    spdlog::error("the client has another version than this fleetrun " FLEET_VERSION
                  "; install the same version on both machines");
    return CallbackGenericService::CreateReactor(context);
  }

 private:
  EventLoop& loop_;
  std::function<void(std::shared_ptr<ServerStream>)> accept_;
};

StreamServer::StreamServer(EventLoop& loop, const std::string& host, int port,
                           const Security& security,
                           std::function<void(std::shared_ptr<ServerStream>)> accept)
    : service_(std::make_unique<Service>(loop, std::move(accept))),
      credentials_(server_credentials(security)) {
  connections_ = std::make_unique<ConnectionLimiter>();
  if (const int error = connections_->listen(host, port, kConnectionTimeout)) {
    throw Error(
        ErrorCode::kUsage, std::string("cannot listen: ") + ::strerror(error),
        host_port(host, port),
        error == EADDRINUSE
            ? "choose another port with --listen, or check whether a fleetd already runs here"
            : "give --listen an address of this host, and a port above 1023");
  }
  grpc::ServerBuilder builder;
  set_up_server(&builder, kConnectionTimeout);
  // Limits the time for the handshake of unauthenticated peers.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 3'000);
  if (!security.tls) limit_unauthenticated_clients(&builder);
  connections_->serve(&builder, credentials_);
  start(&builder);
  if (!security.tls) {
    guard_ = std::make_unique<MemoryGuard>(kMaxGrowth, [this, address = host_port(host, port)] {
      spdlog::error(
          "{} is flooded: unauthenticated clients fill the memory of this process, so it closes "
          "the "
          "port; leave out --insecure, and start fleetd again: then only clients with its secret "
          "get in",
          address);
      connections_->stop_listening();
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    });
  }
  connections_->open();
}

StreamServer::StreamServer(EventLoop& loop, UniqueFd connection,
                           std::function<void(std::shared_ptr<ServerStream>)> accept)
    : service_(std::make_unique<Service>(loop, std::move(accept))) {
  grpc::ServerBuilder builder;
  set_up_server(&builder);
  start(&builder);
  make_nonblocking(connection.get());
  grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
}

void StreamServer::start(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder->RegisterService(service_.get());
  builder->RegisterCallbackGenericService(service_.get());
  server_ = builder->BuildAndStart();
  FLEET_CHECK(server_, "gRPC server did not start");
}

StreamServer::~StreamServer() = default;
int StreamServer::port() const { return connections_ ? connections_->port() : 0; }

std::shared_ptr<grpc::Channel> make_channel_from_fd(UniqueFd connection) {
  set_up_grpc();
  make_nonblocking(connection.get());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomInsecureChannelFromFd("pipe", connection.release(), arguments);
}

Error error_of(const grpc::Status& status, const std::string& address, const Security& security) {
  using grpc::StatusCode;
  if (status.error_code() == StatusCode::UNIMPLEMENTED) {
    return other_version(address,
                         "install the same version everywhere, or check --ips and --fleetd_port");
  }
  if (security.tls) {
    const Listener listener = probe_listener(address, std::chrono::milliseconds(1'000));
    if (listener.kind == Listener::Kind::kPlain) {
      return {ErrorCode::kUsage, "the service at this address is not fleetd: it does not use TLS",
              address, "check --ips and --fleetd_port"};
    }
    if (listener.kind == Listener::Kind::kTls && listener.secret_id != secret_id(security.secret)) {
      return {ErrorCode::kUsage, "this fleetd has another secret than " + security.origin, address,
              "give its secret with FLEETD_SECRET or --fleetd_secret_file"};
    }
    if (listener.kind == Listener::Kind::kTls && !listener.valid_now) {
      return {ErrorCode::kUsage, "its clock differs from this host's by more than a day", address,
              "correct the clocks"};
    }
  }
  return {
      ErrorCode::kPeerLost, "fleetd cannot be reached (" + reason_of(status) + ")", address,
      "check that it runs there (systemctl status fleetd), and that no firewall blocks its port"};
}

}  // namespace fleet
