#include "transport/grpc_setup.h"

#include <absl/synchronization/mutex.h>
#include <grpc/grpc_security.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "proto/control.grpc.pb.h"
#include "transport/certificates.h"
#include "transport/control_messages.h"
#include "transport/local_socket.h"

namespace fleet {
namespace {

// Idle time after which gRPC pings a peer; streams with heartbeats detect silence themselves. A
// client without heartbeats (a rank that waits for the store) pings soon. The host pings seldom,
// because each ping costs it as much as a heartbeat. The caller's peer_timeout bounds the wait for
// the answer (and is the kernel's own limit for unacknowledged data), so a shorter outage of the
// link does no harm.
constexpr int kKeepaliveMs = 2'000, kSeldomMs = 20'000;

// Limit of one connection attempt: the host of a large job has thousands to answer.
constexpr int kAttemptMs = 15'000;

// Per connection, at a time: a launcher has one stream, a rank a few waits.
constexpr int kMaxCalls = 1'000;
constexpr int kMaxMetadataBytes = 8 << 10;

// A plain connection without calls is closed after this time. A legitimate client that needs it
// later connects again.
constexpr int kIdleMs = 10 * 60'000;
// How much an unauthenticated call may send before the server reads it.
constexpr int kAheadBytes = 4 << 10;

// Callbacks run on threads of a reference-counted gRPC queue, which the last channel or server
// tears down. That is a race (gRPC 1.51 occasionally aborts with "prior > 0"), and a thread joins
// itself if a callback drops the last reference. An unconnected channel keeps the queue for the
// lifetime of the process.
void keep_callback_threads() {
  struct Call {
    std::shared_ptr<grpc::Channel> channel = grpc::CreateChannel("", nullptr);
    std::unique_ptr<wire::Rendezvous::Stub> stub = wire::Rendezvous::NewStub(channel);
    grpc::ClientContext context;
    wire::DescribeRequest request;
    wire::DescribeReply reply;
  };
  static Call* const call = new Call;  // reachable, so that leak checkers report no leak
  call->stub->async()->Describe(&call->context, &call->request, &call->reply,
                                [](const grpc::Status&) {});
}

// A peer with another secret, or none, does not reach the service. Its own fleetrun reports why
// (find_security_mismatch()) after a probe without a certificate, which is the event seen here.
// This side reports at intervals that it happened.
void say_turned_away() {
  static std::atomic<int64_t> next{0};
  const auto now = static_cast<int64_t>(monotonic_seconds());
  int64_t due = next.load();
  if (now < due || !next.compare_exchange_strong(due, now + 10)) return;
  spdlog::warn(
      "refused a connection that did not have our secret; was it one of our nodes or clients?");
}

}  // namespace

// Runs once per process. We report gRPC's errors ("failed to bind") ourselves; its own output goes
// to the debug log.
void set_up_grpc() {
  static const bool once = [] {
    // Debian's Abseil checks for deadlocks at every lock, which costs gRPC a tenth of its time.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    gpr_set_log_function([](gpr_log_func_args* args) {
      const std::string_view message(args->message);
      // gRPC logs the reason before it aborts the process.
      const bool fatal = message.starts_with("assertion failed");
      if (message.find("peer did not return a certificate") != message.npos) say_turned_away();
      spdlog::log(fatal ? spdlog::level::critical : spdlog::level::debug, "grpc: {}",
                  args->message);
    });
    keep_callback_threads();
    return true;
  }();
  (void)once;
}

namespace {

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1'000);  // DNS records may appear late
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kAttemptMs);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  return args;
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& address, const Security& security,
                                          grpc::ChannelArguments args) {
  if (security.tls) args.SetSslTargetNameOverride(kCertificateName);
  return grpc::CreateCustomChannel(address, channel_credentials(security), args);
}

struct Setting {
  const char* name;
  int value;
};
// Fewer and larger pieces on the way: less time a byte. A minimum of a chunk to read is memory that
// each connection has.
constexpr Setting kBulkSettings[] = {
    {GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX},
    {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},  // gRPC pings to learn the bandwidth
    {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 2 << 20},
    {GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20},
    {GRPC_ARG_TCP_READ_CHUNK_SIZE, 256 << 10},
    {GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, 64 << 10},
    {GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 1 << 20},
};

void set_server_limits(grpc::ServerBuilder* builder) {
  set_up_grpc();
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a taken port is an error
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCalls);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

}  // namespace

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Security& security,
                                            std::chrono::milliseconds peer_timeout,
                                            Liveness liveness) {
  set_up_grpc();
  grpc::ChannelArguments args = channel_arguments();
  if (is_local_address(address)) {
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
  }
  if (liveness == Liveness::kHeartbeats) peer_timeout = std::max(peer_timeout, kStreamTimeout);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
              liveness == Liveness::kHeartbeats ? kSeldomMs : kKeepaliveMs);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(peer_timeout.count()));
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return channel_to(address, security, std::move(args));
}

void set_up_server(grpc::ServerBuilder* builder, std::chrono::milliseconds peer_timeout) {
  set_server_limits(builder);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kSeldomMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              static_cast<int>(peer_timeout.count()));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

std::shared_ptr<grpc::Channel> make_bulk_channel(const std::string& address,
                                                 const Security& security) {
  set_up_grpc();
  grpc::ChannelArguments args = channel_arguments();
  for (const Setting& each : kBulkSettings) args.SetInt(each.name, each.value);
  return channel_to(address, security, std::move(args));
}

void set_up_bulk_server(grpc::ServerBuilder* builder) {
  set_server_limits(builder);
  for (const Setting& each : kBulkSettings) builder->AddChannelArgument(each.name, each.value);
}

void set_up_local_server(grpc::ServerBuilder* builder) {
  set_up_grpc();
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

// Disables bandwidth probes, which would raise the amount a client may send ahead.
void limit_unauthenticated_clients(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kAheadBytes);
}

std::string reason_of(const grpc::Status& status) {
  std::string text = status.error_message();
  constexpr std::string_view kLast = "last error: ", kRemote = "remote host: ";
  constexpr std::string_view kName = "is_balancer=0: ";  // marks an unknown host name
  for (const std::string_view marker : {kLast, kRemote, kName}) {
    if (const size_t at = text.rfind(marker); at != std::string::npos) {
      text = text.substr(at + marker.size());
    }
  }
  return text.empty() ? "no reason given" : text;
}

std::string host_port(const std::string& host, int port) {
  const bool bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (bare_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

namespace {

// One certificate serves all connections that a process opens within a day.
Certificates own_certificates(const std::string& secret) {
  constexpr double kDay = 24 * 3600;
  static Mutex mutex;
  static auto* const kept FLEET_PT_GUARDED_BY(mutex) = new Certificates;
  static auto* const kept_for FLEET_PT_GUARDED_BY(mutex) = new std::string;
  static double until FLEET_GUARDED_BY(mutex) = 0;
  const double now = monotonic_seconds();
  const MutexLock lock(mutex);
  if (now >= until || *kept_for != secret) {
    *kept = issue_certificates(secret);
    *kept_for = secret;
    until = now + kDay;
  }
  return *kept;
}

// The server's certificate, renewed before it expires: a server may outlive one.
class ServerCertificate {
 public:
  explicit ServerCertificate(std::string secret) : secret_(std::move(secret)) {}

  // gRPC calls this at each handshake, from any thread.
  static grpc_ssl_certificate_config_reload_status fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ServerCertificate*>(self)->renew(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status renew(grpc_ssl_server_certificate_config** config) {
    const double now = monotonic_seconds();
    const MutexLock lock(mutex_);
    if (now < renew_at_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    try {
      const Certificates certificates = own_certificates(secret_);
      const grpc_ssl_pem_key_cert_pair pair{certificates.key.c_str(), certificates.chain.c_str()};
      *config = grpc_ssl_server_certificate_config_create(certificates.authority.c_str(), &pair, 1);
    } catch (const std::exception&) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    }
    renew_at_ = now + std::chrono::duration<double>(kCertificateLife / 2).count();
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::string secret_;
  Mutex mutex_;
  double renew_at_ FLEET_GUARDED_BY(mutex_) = 0;
};

// gRPC's C functions can renew certificates; its C++ classes cannot.
class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  // gRPC may ask for a certificate until the last connection of a server has gone, and does not
  // report that moment. The certificate therefore lives as long as the process.
  explicit TlsServerCredentials(const std::string& secret) {
    static Mutex mutex;
    static auto* const kept FLEET_PT_GUARDED_BY(mutex) =
        new std::vector<std::unique_ptr<ServerCertificate>>;
    const MutexLock lock(mutex);
    kept->push_back(std::make_unique<ServerCertificate>(secret));
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &ServerCertificate::fetch,
            kept->back().get()));
  }
  ~TlsServerCredentials() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security) {
  if (security.open()) return grpc::InsecureServerCredentials();
  return std::make_shared<TlsServerCredentials>(security.secret);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Security& security) {
  if (security.open()) return grpc::InsecureChannelCredentials();
  const Certificates certificates = own_certificates(security.secret);
  return grpc::SslCredentials({certificates.authority, certificates.key, certificates.chain});
}

}  // namespace fleet
