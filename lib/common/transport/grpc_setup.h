// This project's use of gRPC: credentials, limits, keepalive. The only place that creates channels
// and credentials.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "transport/security.h"

namespace fleet {

inline constexpr int kMaxMessageBytes = 16 << 20;

// Minimum time for which sent data may stay unacknowledged. Repeated packet loss can stall TCP for
// longer than a node may be silent. Heartbeats detect a dead peer sooner.
inline constexpr std::chrono::milliseconds kStreamTimeout{60'000};

// Detection of a peer that died without notice: by gRPC's pings, within 3 s, or by the connection's
// stream's heartbeats, which make pings redundant.
enum class Liveness { kPings, kHeartbeats };

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security);
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Security& security);

// Call it before creating a channel or server by other means; the functions below call it
// themselves.
void set_up_grpc();

// Creates a connection that is not shared with other channels of the process and uses no proxies. A
// Unix socket (local_socket.h) needs no credentials. With TLS, the certificate is valid for most of
// kCertificateLife from now on. A peer whose kernel does not answer for `peer_timeout` counts as
// lost; with heartbeats, for kStreamTimeout.
std::shared_ptr<grpc::Channel> make_channel(
    const std::string& address, const Security& security,
    std::chrono::milliseconds peer_timeout = std::chrono::milliseconds(3'000),
    Liveness liveness = Liveness::kPings);
// Sets keepalive, limits and an exclusive port; also redirects gRPC's own messages to our debug
// log.
void set_up_server(grpc::ServerBuilder* builder,
                   std::chrono::milliseconds peer_timeout = std::chrono::milliseconds(3'000));

// These two are for streams of large messages (up to 1 MiB each, one after the other) between
// processes that may be suspended for long. There are no pings, because a suspended process answers
// none: use watch_peer_host() of tcp_listener.h, on an idle connection, to notice the loss of a
// host.
std::shared_ptr<grpc::Channel> make_bulk_channel(const std::string& address,
                                                 const Security& security);
void set_up_bulk_server(grpc::ServerBuilder* builder);

// For a server that only this user's processes on this host can reach: sets message limits. The
// kernel reports closed peers, so the server sends no pings.
void set_up_local_server(grpc::ServerBuilder* builder);
// For a server without a secret to prove: limits the memory of each call and connection; for that
// of all see memory_guard.h. (gRPC's quota for all would end the streams of the job's own nodes.)
void limit_unauthenticated_clients(grpc::ServerBuilder* builder);

// The informative part of a status: "Connection refused" from gRPC's chain of wrappers.
std::string reason_of(const grpc::Status& status);
// "host:port", with brackets around an IPv6 address.
std::string host_port(const std::string& host, int port);

}  // namespace fleet
