// How this project uses gRPC: credentials, limits, keepalive. The only place that makes channels
// and credentials.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

#include "rendezvous/credentials.h"
#include "rendezvous/security.h"

namespace fleet {

inline constexpr int kMaxMessageBytes = 16 << 20;

// How long what is sent over a connection may stay unacknowledged, at least: packets that are lost
// again and again hold TCP up for longer than a node may be silent. Who has beats notices sooner.
inline constexpr std::chrono::milliseconds kStreamPatience{60'000};

// How a connection finds that its peer is dead although nothing says so: by pings of gRPC's, within
// 3 s, or by beats of the stream on it, which make the pings a waste.
enum class Liveness { kPings, kBeats };

// Before the first channel or server of a process that none of the functions below makes; they do
// it themselves.
void set_up_grpc();

// A connection of its own (not shared with other channels of the process), without proxies. A Unix
// socket (local_socket.h) needs no credentials. With TLS its certificate is good for most of
// kCertificateLife from now on.
// A peer whose kernel does not answer for `patience` is given up; with beats, for kStreamPatience.
std::shared_ptr<grpc::Channel> make_channel(
    const std::string& address, const Security& security,
    std::chrono::milliseconds patience = std::chrono::milliseconds(3'000),
    Liveness liveness = Liveness::kPings);
// Keepalive, bounds and an exclusive port; also sends gRPC's own messages to our log at debug
// level.
void set_up_server(grpc::ServerBuilder* builder,
                   std::chrono::milliseconds patience = std::chrono::milliseconds(3'000));

// For a server that only this user's processes on this host reach: bounds of messages. A kernel
// that is there notices who is gone, so nobody is pinged.
void set_up_local_server(grpc::ServerBuilder* builder);
// Where everybody reaches a server, with or without a secret: what each call and each connection
// may hold of its memory. Its connections are to be screened (screened_connection.h).
void bound_strangers(grpc::ServerBuilder* builder);

// The part of a status a person needs: "Connection refused" of gRPC's chain of wrappers.
std::string reason_of(const grpc::Status& status);
// "host:port", with brackets around an IPv6 address.
std::string host_port(const std::string& host, int port);

}  // namespace fleet
