// Connecting to a server.
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "ps/transport/grpc_stream.h"
#include "ps/transport/shared_memory.h"
#include "transport/certificates.h"
#include "transport/grpc_setup.h"
#include "transport/tcp_listener.h"

namespace fleet::ps {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Reactor = grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

constexpr std::chrono::milliseconds kRetryAfter{100};
constexpr char kNotOurs[] =
    "check the servers' addresses, and that the same version runs on all machines";

// The answer of a server to a call: its initial metadata, or the end of the call.
class Answer {
 public:
  void set(std::optional<grpc::Status> failure) {
    const MutexLock lock(mutex_);
    if (known_) return;
    known_ = true;
    failure_ = std::move(failure);
    changed_.notify_all();
  }
  // OK; the failure; or DEADLINE_EXCEEDED.
  grpc::Status wait(SteadyClock::time_point deadline) {
    const MutexLock lock(mutex_);
    while (!known_ && changed_.wait_until(mutex_, deadline)) {
    }
    if (!known_) return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer"};
    return failure_.value_or(grpc::Status::OK);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool known_ FLEET_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> failure_ FLEET_GUARDED_BY(mutex_);
};

// A call that is refused may also have initial metadata, but not ours. Its end follows.
bool is_answer(bool ok, const grpc::ClientContext& context) {
  return ok && !metadata_value(context.GetServerInitialMetadata(), kIdKey).empty();
}

// The call without data, whose end tells that the other host is lost.
class ClientWatch final : public Reactor {
 public:
  ClientWatch(const std::string& address, const Security& security,
              std::function<void(std::string)> lost)
      : stub_(make_bulk_channel(address, security)), lost_(std::move(lost)) {}

  void start(const std::string& id, std::shared_ptr<ClientWatch> self) {
    self_ = std::move(self);
    context_.AddMetadata(kIdKey, id);
    stub_.PrepareBidiStreamingCall(&context_, kWatchMethod, {}, this);
    StartCall();
  }
  Answer& answer() { return answer_; }
  std::string peer() const { return context_.peer(); }
  void cancel() {
    cancelled_ = true;
    context_.TryCancel();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (is_answer(ok, context_)) answer_.set(std::nullopt);
  }
  void OnDone(const grpc::Status& status) override {
    const auto self = std::move(self_);
    answer_.set(status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "it has ended") : status);
    if (!status.ok() && !cancelled_) lost_(reason_of(status));
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  const std::function<void(std::string)> lost_;
  Answer answer_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<ClientWatch> self_;
};

class ClientStream final : public GrpcStream<Reactor> {
 public:
  ClientStream(const std::string& address, ConnectionHandler& handler, const Security& security)
      : GrpcStream(address, handler),
        security_(security),
        stub_(make_bulk_channel(address, security)) {}

  grpc::Status call(bool shared_memory, SteadyClock::time_point deadline) {
    self_ = std::static_pointer_cast<ClientStream>(shared_from_this());
    context_->AddMetadata(kVersionKey, std::to_string(kProtocolVersion));
    if (shared_memory) context_->AddMetadata(kHostKey, host_identity());
    stub_.PrepareBidiStreamingCall(context_.get(), kStreamMethod, {}, this);
    AddHold();        // until on_over()
    start_reading();  // which also ends with the call
    StartCall();
    return answer_.wait(deadline);
  }
  // For an answered call.
  std::string answer(const char* key) {
    const MutexLock lock(mutex_);
    return context_ ? metadata_value(context_->GetServerInitialMetadata(), key) : std::string();
  }

  grpc::Status watch(SteadyClock::time_point deadline) {
    const std::weak_ptr<StreamConnection> weak = weak_from_this();
    {
      const MutexLock lock(mutex_);
      if (!context_) return {grpc::StatusCode::UNAVAILABLE, "the call has ended"};
      server_ = context_->peer();
    }
    const auto watch =
        std::make_shared<ClientWatch>(server_, security_, [weak](const std::string& reason) {
          if (const auto self = weak.lock()) {
            std::static_pointer_cast<ClientStream>(self)->lost(reason);
          }
        });
    {
      const MutexLock lock(mutex_);
      watch_ = watch;
    }
    watch->start(answer(kIdKey), watch);
    return watch->answer().wait(deadline);
  }
  void open(std::chrono::milliseconds peer_timeout, ConnectionHandler& handler) {
    for_each_socket_to(server_, 0, [&](int socket) { watch_peer_host(socket, peer_timeout); });
    const std::string own = answer(kClientKey);
    long long port = 0;
    if (parse_int(own.substr(own.rfind(':') + 1), &port)) own_port_ = static_cast<int>(port);
    outgoing_->push(FrameKind::kOpen);
    handler.opened(shared_from_this());
    inbox_.start(shared_from_this(), false);
    start_sending();
  }
  // This end does not use it.
  void discard() {
    cancel();
    stop();
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (is_answer(ok, *context_)) answer_.set(std::nullopt);
  }
  void OnDone(const grpc::Status& status) override {
    answer_.set(status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "it has ended") : status);
    {
      // gRPC keeps unsent data, which the sender owns, as long as the context.
      const MutexLock lock(mutex_);
      context_.reset();
    }
    cancel();
    done(reason_of(status));
  }

 private:
  void lost(const std::string& reason) {
    ended(reason);
    abandon();
  }
  void cancel() {
    const MutexLock lock(mutex_);
    if (context_) context_->TryCancel();
    if (watch_) watch_->cancel();
  }
  void abandon() override {
    cancel();
    stop();
    // Otherwise gRPC would use the sender's memory until the kernel has sent the present frame.
    if (own_port_ != 0) {
      for_each_socket_to(server_, own_port_, [](int socket) { ::shutdown(socket, SHUT_RDWR); });
    }
  }
  void on_over(bool well) override {
    if (well) StartWritesDone();
    RemoveHold();
  }

  const Security security_;
  grpc::GenericStub stub_;
  // Null after OnDone().
  std::unique_ptr<grpc::ClientContext> context_ = std::make_unique<grpc::ClientContext>();
  Answer answer_;
  std::shared_ptr<ClientWatch> watch_ FLEET_GUARDED_BY(mutex_);
  std::string server_;            // its address in gRPC's notation; written before own_port_
  std::atomic<int> own_port_{0};  // the local TCP port; 0: unknown
};

// Errors that trying again does not mend.
void check_security(const std::string& address, const Security& ours) {
  const fleet::Listener there = probe_listener(address, std::chrono::milliseconds(1'000));
  using Kind = fleet::Listener::Kind;
  if (there.kind == Kind::kNothing) return;
  if (!ours.tls && there.kind == Kind::kTls) {
    throw Error(ErrorCode::kUsage, "it requires the job's secret, but this process has none",
                address, "start all servers and trainers with the same secret, or all without");
  }
  if (!ours.tls) return;
  if (there.kind == Kind::kPlain) {
    throw Error(ErrorCode::kUsage, "it has no TLS, but this process has a secret", address,
                "start all servers and trainers with the same secret, or all without");
  }
  if (there.secret_id != secret_id(ours.secret)) {
    throw Error(ErrorCode::kUsage,
                "it has another secret than this process (from " + ours.origin + ")", address,
                "start all servers and trainers with the same secret");
  }
  if (!there.valid_now) {
    throw Error(ErrorCode::kUsage, "its certificate is not valid at this host's time", address,
                "set the clocks: they may differ by at most a day");
  }
}

void check_failure(const grpc::Status& status, const std::string& address,
                   const Security& security) {
  using grpc::StatusCode;
  if (status.error_code() == StatusCode::UNIMPLEMENTED ||
      status.error_code() == StatusCode::FAILED_PRECONDITION) {
    throw Error(ErrorCode::kUsage,
                "this is not a parameter server of this version (" + reason_of(status) + ")",
                address, kNotOurs);
  }
  const std::string reason = reason_of(status);
  if (reason.find("refused") == std::string::npos) check_security(address, security);
}

// A connection, or a failure that may be temporary.
std::shared_ptr<Connection> try_to_connect(const std::string& address, ConnectionHandler& handler,
                                           const TransportOptions& options,
                                           SteadyClock::time_point deadline, std::string* failure) {
  const auto stream = std::make_shared<ClientStream>(address, handler, options.security);
  grpc::Status status = stream->call(options.shared_memory, deadline);
  if (status.ok()) {
    if (const std::string local = stream->answer(kLocalKey); !local.empty()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
      auto shared =
          SharedConnection::connect(local, stream->answer(kIdKey), address, handler, left);
      if (shared) {
        stream->discard();
        handler.opened(shared);
        shared->begin(false);
        return shared;
      }
    }
    status = stream->watch(deadline);
    if (status.ok()) {
      stream->open(options.peer_timeout, handler);
      return stream;
    }
  }
  stream->discard();
  check_failure(status, address, options.security);
  *failure = reason_of(status);
  return nullptr;
}

}  // namespace

std::shared_ptr<Connection> connect(const std::string& address, ConnectionHandler& handler,
                                    const TransportOptions& options,
                                    std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  std::string failure;
  do {
    if (auto connection = try_to_connect(address, handler, options, deadline, &failure)) {
      return connection;
    }
    std::this_thread::sleep_until(std::min(deadline, SteadyClock::now() + kRetryAfter));
  } while (SteadyClock::now() < deadline);
  throw Error(ErrorCode::kTimeout,
              "the server did not answer within " + seconds_text(timeout) + " (" + failure + ")",
              address, "look at that server's log, and check that no firewall blocks the port");
}

}  // namespace fleet::ps
