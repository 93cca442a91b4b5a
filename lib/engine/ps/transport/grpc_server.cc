// Listening for trainers.
#include <grpcpp/generic/async_generic_service.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "ps/transport/grpc_stream.h"
#include "ps/transport/shared_memory.h"
#include "transport/connection_limiter.h"
#include "transport/grpc_setup.h"
#include "transport/local_socket.h"
#include "transport/tcp_listener.h"

namespace fleet::ps {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kHandshakeMs = 10'000;  // for clients that have not shown the secret
constexpr std::chrono::milliseconds kCloseTimeout{5'000};

std::string random_id() { return new_secret(); }

// "10.0.0.1:4711"
std::string name_of_peer(const std::string& uri) {
  const auto peer = peer_of(uri);
  if (!peer) return uri;
  const size_t space = peer->connection.find(' ');
  return host_port(peer->connection.substr(0, space), std::atoi(&peer->connection[space + 1]));
}

// The state that the calls of a server share. Thread-safe.
class OpenStreams {
 public:
  OpenStreams(ConnectionHandler& handler, const TransportOptions& options)
      : handler(handler), peer_timeout(options.peer_timeout) {}

  void add_call(const std::string& id, const std::shared_ptr<StreamConnection>& stream) {
    const MutexLock lock(mutex_);
    calls_[id] = stream;
  }
  void remove_call(const std::string& id) {
    const MutexLock lock(mutex_);
    calls_.erase(id);
  }
  std::shared_ptr<StreamConnection> call(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : found->second.lock();
  }
  // False: the server closes, and takes no more.
  bool add_connection(const std::shared_ptr<StreamConnection>& connection) {
    const MutexLock lock(mutex_);
    if (closing_) return false;
    std::erase_if(connections_, [](const auto& each) { return each.expired(); });
    connections_.push_back(connection);
    return true;
  }
  std::vector<std::shared_ptr<StreamConnection>> close() {
    const MutexLock lock(mutex_);
    closing_ = true;
    std::vector<std::shared_ptr<StreamConnection>> all;
    for (const auto& each : connections_) {
      if (auto connection = each.lock()) all.push_back(std::move(connection));
    }
    return all;
  }

  ConnectionHandler& handler;
  const std::chrono::milliseconds peer_timeout;
  std::string host, local_address;  // for shared memory; "": there is none

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::weak_ptr<StreamConnection>> calls_ FLEET_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<StreamConnection>> connections_ FLEET_GUARDED_BY(mutex_);
  bool closing_ FLEET_GUARDED_BY(mutex_) = false;
};

// The call without data of a client (grpc_stream.h).
class ServerWatch final : public grpc::ServerGenericBidiReactor {
 public:
  ServerWatch(grpc::CallbackServerContext* context, std::weak_ptr<StreamConnection> stream,
              std::chrono::milliseconds peer_timeout)
      : stream_(std::move(stream)) {
    for_each_socket_to(context->peer(), 0,
                       [&](int socket) { watch_peer_host(socket, peer_timeout); });
  }
  void start(std::shared_ptr<ServerWatch> self) {
    self_ = std::move(self);
    StartSendInitialMetadata();
    StartRead(&in_);
  }
  // Any thread, any number of times.
  void finish() {
    const MutexLock lock(mutex_);
    if (!std::exchange(over_, true)) Finish(grpc::Status::OK);
  }

  // It ends when the client cancels it, at the end of its stream, or when the client is lost.
  void OnCancel() override {
    if (const auto stream = stream_.lock()) {
      stream->break_off(Error(ErrorCode::kPeerLost,
                              "the connection is lost (its process or its host is gone)",
                              stream->peer(), "look at the log of that process"));
    }
  }
  void OnReadDone(bool ok) override {
    if (ok) return StartRead(&in_);  // it means nothing
    finish();
  }
  void OnDone() override { const auto self = std::move(self_); }

 private:
  const std::weak_ptr<StreamConnection> stream_;
  grpc::ByteBuffer in_;
  Mutex mutex_;
  bool over_ FLEET_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ServerWatch> self_;
};

class ServerStream final : public GrpcStream<grpc::ServerGenericBidiReactor> {
 public:
  ServerStream(grpc::CallbackServerContext* context, std::shared_ptr<OpenStreams> registry)
      : GrpcStream(name_of_peer(context->peer()), registry->handler),
        registry_(std::move(registry)),
        peer_uri_(context->peer()),
        id_(random_id()),
        context_(context) {
    expects_open_ = true;
  }

  void start(grpc::CallbackServerContext* context) {
    self_ = std::static_pointer_cast<ServerStream>(shared_from_this());
    registry_->add_call(id_, shared_from_this());
    const auto& metadata = context->client_metadata();
    context->AddInitialMetadata(kIdKey, id_);
    context->AddInitialMetadata(kClientKey, context->peer());
    if (!registry_->host.empty() && metadata_value(metadata, kHostKey) == registry_->host) {
      context->AddInitialMetadata(kLocalKey, registry_->local_address);
    }
    StartSendInitialMetadata();
    start_reading();
  }
  void set_watch(const std::shared_ptr<ServerWatch>& watch) {
    const MutexLock lock(mutex_);
    watch_ = watch;
  }

  void OnCancel() override { stop(); }
  void OnDone() override {
    registry_->remove_call(id_);
    std::shared_ptr<ServerWatch> watch;
    {
      const MutexLock lock(mutex_);
      context_ = nullptr;
      watch = watch_.lock();
    }
    if (watch) watch->finish();
    done("its process has ended, or gave the connection up");
  }

 private:
  void on_opened() override {
    if (!registry_->add_connection(shared_from_this())) return stop();
    inbox_.start(shared_from_this(), true);
  }
  void abandon() override {
    {
      const MutexLock lock(mutex_);
      if (!context_) return;
      context_->TryCancel();
    }
    stop();
    // Otherwise gRPC would use the sender's memory until the kernel has sent the present frame.
    for_each_socket_to(peer_uri_, 0, [](int socket) { ::shutdown(socket, SHUT_RDWR); });
  }
  void on_over(bool well) override {
    Finish(well ? grpc::Status::OK : grpc::Status(grpc::StatusCode::CANCELLED, "given up"));
  }

  const std::shared_ptr<OpenStreams> registry_;
  const std::string peer_uri_, id_;
  grpc::CallbackServerContext* context_ FLEET_GUARDED_BY(mutex_);  // null after OnDone()
  std::weak_ptr<ServerWatch> watch_ FLEET_GUARDED_BY(mutex_);
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(std::shared_ptr<OpenStreams> registry) : registry_(std::move(registry)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kStreamMethod) return stream(context);
    if (context->method() == kWatchMethod) return watch(context);
    return CallbackGenericService::CreateReactor(context);
  }

 private:
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(const grpc::Status& why) { Finish(why); }
    void OnDone() override { delete this; }
  };

  grpc::ServerGenericBidiReactor* stream(grpc::CallbackServerContext* context) {
    const std::string version = metadata_value(context->client_metadata(), kVersionKey);
    if (version != std::to_string(kProtocolVersion)) {
      return new Refusal({grpc::StatusCode::FAILED_PRECONDITION,
                          "the server speaks version " + std::to_string(kProtocolVersion) +
                              " of the protocol, not " + version});
    }
    const auto stream = std::make_shared<ServerStream>(context, registry_);
    stream->start(context);
    return stream.get();
  }
  grpc::ServerGenericBidiReactor* watch(grpc::CallbackServerContext* context) {
    const std::string id = metadata_value(context->client_metadata(), kIdKey);
    const auto stream = std::dynamic_pointer_cast<ServerStream>(registry_->call(id));
    if (!stream) return new Refusal({grpc::StatusCode::UNAVAILABLE, "the connection is over"});
    const auto watch = std::make_shared<ServerWatch>(context, stream, registry_->peer_timeout);
    stream->set_watch(watch);
    context->AddInitialMetadata(kIdKey, id);
    watch->start(watch);
    return watch.get();
  }

  const std::shared_ptr<OpenStreams> registry_;
};

struct HostPort {
  std::string host;
  int port = 0;
};

HostPort parse_address(const std::string& address) {
  const size_t colon = address.rfind(':');
  long long port = -1;
  if (colon == std::string::npos || !parse_int(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    throw Error(ErrorCode::kUsage, "not an address of the form HOST:PORT", address,
                "give a host and a port between 0 and 65535");
  }
  return {address.substr(0, colon), static_cast<int>(port)};
}

[[noreturn]] void cannot_listen(const std::string& address, int error) {
  if (error == EADDRINUSE) {
    throw Error(ErrorCode::kUsage, "the port is taken by another program", address,
                "choose other ports with --servers, or end that program");
  }
  if (error == EACCES) {
    throw Error(ErrorCode::kUsage, "the port is for root only", address,
                "choose ports above 1023 with --servers");
  }
  throw Error(ErrorCode::kIo, std::string("cannot listen: ") + std::strerror(error), address,
              "this host must have the address that --servers names");
}

class GrpcListener final : public Listener {
 public:
  GrpcListener(const std::string& address, ConnectionHandler& handler,
               const TransportOptions& options)
      : registry_(std::make_shared<OpenStreams>(handler, options)),
        service_(registry_),
        credentials_(server_credentials(options.security)) {
    const HostPort at = parse_address(address);
    // No limit for unacknowledged data: the kernel would end connections to suspended processes.
    constexpr std::chrono::milliseconds kNoLimit{0};
    if (const int error = limiter_.listen(at.host, at.port, kNoLimit)) {
      cannot_listen(address, error);
    }
    address_ = host_port(is_any_address(at.host) ? "127.0.0.1" : at.host, limiter_.port());
    if (options.shared_memory) listen_locally();
    grpc::ServerBuilder builder;
    set_up_bulk_server(&builder);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
    limiter_.serve(&builder, credentials_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    FLEET_CHECK(server_, "gRPC server did not start");
    if (local_accept_) local_accept_->start();
    limiter_.open();
  }
  ~GrpcListener() override {
    limiter_.stop_listening();
    local_accept_.reset();
    close_connections();
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    limiter_.close();
  }
  std::string address() const override { return address_; }

 private:
  void listen_locally() {
    try {
      local_ = LocalSocket::listen("");
      local_accept_ = std::make_unique<AcceptLoop>(
          "ps_local", [this](UniqueFd fd, const sockaddr_storage&) { accept(std::move(fd)); });
      local_accept_->add(local_.take_listener());
      registry_->local_address = local_.address();
      registry_->host = host_identity();
    } catch (const Error& error) {
      spdlog::debug("{}: no shared memory: {}", address_, error.what());
    }
  }
  void accept(UniqueFd socket) {
    const auto find = [&](const std::string& id) {
      const auto call = registry_->call(id);
      return call ? call->peer() : std::string();
    };
    const auto connection = SharedConnection::accept(std::move(socket), find, registry_->handler);
    if (!connection || !registry_->add_connection(connection)) return;
    connection->confirm();
    try {
      connection->begin(true);
    } catch (const Error& error) {  // the client sees the end of the socket
      spdlog::warn("{}", error.what());
    }
  }
  void close_connections() {
    const auto all = registry_->close();
    for (const auto& each : all) each->close();
    const auto deadline = SteadyClock::now() + kCloseTimeout;
    for (const auto& each : all) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
      each->disconnect(std::max(left, std::chrono::milliseconds(0)));
    }
  }

  const std::shared_ptr<OpenStreams> registry_;
  Service service_;
  ConnectionLimiter limiter_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // renew themselves while the server runs
  LocalSocket local_;
  std::unique_ptr<AcceptLoop> local_accept_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

std::unique_ptr<Listener> listen(const std::string& address, ConnectionHandler& handler,
                                 const TransportOptions& options) {
  return std::make_unique<GrpcListener>(address, handler, options);
}

}  // namespace fleet::ps
