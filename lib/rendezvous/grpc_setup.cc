#include "rendezvous/grpc_setup.h"

#include <absl/synchronization/mutex.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/certificates.h"
#include "rendezvous/local_socket.h"
#include "rendezvous/wire.h"

namespace fleet {
namespace {

// How long a connection may be silent before its kernel is asked: by beats where there are any.
// Elsewhere, at a client (a rank that waits for the store), soon; each ping costs the host as much
// as a beat, so that it asks seldom itself. What the peer gets to answer (also the kernel's own
// bound for what is sent and not acknowledged) is the caller's patience: a link that is down for
// less than that costs nothing.
constexpr int kKeepaliveMs = 2'000, kSeldomMs = 20'000;

// How long one attempt to connect may take: the host of a large job has thousands to answer.
constexpr int kAttemptMs = 15'000;

// Of one connection, at a time: a launcher has a stream, a rank a few waits.
constexpr int kMaxCalls = 1'000;
constexpr int kMaxMetadataBytes = 8 << 10;

// After so long a plain connection without a call is closed: a friend that comes back later
// connects again.
constexpr int kIdleMs = 10 * 60'000;
// What a stranger's call may send ahead of being read.
constexpr int kAheadBytes = 4 << 10;

// gRPC's callbacks run on threads of a queue that counts who uses it and is torn down with the last
// channel or server: a race (grpc 1.51 aborts with "prior > 0" now and then), and a thread that
// joins itself where a callback drops the last one. A channel that leads nowhere holds it for as
// long as the process lives.
void keep_callback_threads() {
  struct Call {
    std::shared_ptr<grpc::Channel> channel = grpc::CreateChannel("", nullptr);
    std::unique_ptr<wire::Rendezvous::Stub> stub = wire::Rendezvous::NewStub(channel);
    grpc::ClientContext context;
    wire::DescribeRequest request;
    wire::DescribeReply reply;
  };
  static Call* const call = new Call;  // reachable: leak checkers see no leak
  call->stub->async()->Describe(&call->context, &call->request, &call->reply, [](grpc::Status) {});
}

// Whoever has another secret, or none, does not get as far as the service. Their own fleetrun tells
// them why (mismatch.h) after a look without a certificate, which is what is seen here; this side
// says at least that it happened, now and then.
void say_turned_away() {
  static std::atomic<int64_t> next{0};
  const auto now = static_cast<int64_t>(monotonic_seconds());
  int64_t due = next.load();
  if (now < due || !next.compare_exchange_strong(due, now + 10)) return;
  spdlog::warn(
      "a connection was turned away: it had not our secret; was that a node or client of ours?");
}

}  // namespace

// Once a process. What gRPC prints to standard error ("failed to bind") we report ourselves: kept
// for debugging.
void set_up_grpc() {
  static const bool once = [] {
    // Debian's Abseil looks for deadlocks at every lock, which costs gRPC a tenth of its time.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    gpr_set_log_function([](gpr_log_func_args* args) {
      const std::string_view message(args->message);
      // Before it aborts the process it says why.
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

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Security& security,
                                            std::chrono::milliseconds patience, Liveness liveness) {
  set_up_grpc();
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1'000);  // names may come late
  const bool local = is_local_address(address);
  if (!local) {
    if (liveness == Liveness::kBeats) patience = std::max(patience, kStreamPatience);
    args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                liveness == Liveness::kBeats ? kSeldomMs : kKeepaliveMs);
    args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(patience.count()));
    args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kAttemptMs);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  if (local) return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
  if (security.tls) args.SetSslTargetNameOverride(kCertificateName);
  return grpc::CreateCustomChannel(address, channel_credentials(security), args);
}

void set_up_server(grpc::ServerBuilder* builder, std::chrono::milliseconds patience) {
  set_up_grpc();
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a taken port is an error
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kSeldomMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(patience.count()));
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCalls);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

void set_up_local_server(grpc::ServerBuilder* builder) {
  set_up_grpc();
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
}

// Without probes of the bandwidth, which would raise what may be sent ahead.
void bound_strangers(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kAheadBytes);
}

std::string reason_of(const grpc::Status& status) {
  std::string text = status.error_message();
  constexpr std::string_view kLast = "last error: ", kRemote = "remote host: ";
  constexpr std::string_view kName = "is_balancer=0: ";  // a name that is not known
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

}  // namespace fleet
