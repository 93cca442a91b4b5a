// Heartbeats as datagrams, in addition to those on the stream. If the network loses packets, TCP
// holds back all data behind a lost packet, for seconds; datagrams arrive independently. Each one
// proves that the other end lives. Behind a firewall that passes only TCP, the stream's heartbeats
// remain.
//
// A datagram names its session and carries a count and an HMAC-SHA256 with the session's key, which
// the Welcome delivers. Forged or replayed datagrams and those of unknown sessions are dropped
// without an answer.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "transport/control_messages.h"

namespace fleet {

std::string encode_heartbeat(const wire::DatagramHeartbeat& heartbeat, std::string_view key);
// The key of a session; nullptr: there is no such session.
using KeyOfSession = std::function<const std::string*(uint64_t session)>;
// nullopt if these bytes are not a heartbeat with its session's key.
std::optional<wire::DatagramHeartbeat> decode_heartbeat(std::string_view bytes,
                                                        const KeyOfSession& key_of);

// Where a datagram came from, and the local address at which it arrived.
struct DatagramPath {
  sockaddr_storage peer{};
  socklen_t peer_size = 0;
  std::string control;  // for sendmsg(): the answer leaves from that local address
};

// The host's end. Not thread-safe.
class HostHeartbeats {
 public:
  // Binds the UDP port at the address (or at all: "", "0.0.0.0", "::"). Returns false on failure.
  bool open(const std::string& host, int port);
  // The key for the Welcome of this session; the same each time. "" if not open.
  std::string key_of(uint64_t session);
  void forget(uint64_t session) { nodes_.erase(session); }
  // The sessions whose heartbeats arrived since the last call.
  std::vector<uint64_t> receive();
  // Sends a heartbeat to every session that has sent one.
  void send();

 private:
  struct Node {
    std::string key;
    uint64_t received = 0, sent = 0;  // the last counts
    DatagramPath path;                // path of the last received datagram
  };
  UniqueFd socket_;
  std::map<uint64_t, Node> nodes_;
};

// A node's end. Not thread-safe.
class NodeHeartbeats {
 public:
  // host: the peer of the stream in gRPC's notation ("ipv4:10.0.0.1:6768"). Opens nothing if the
  // key is empty.
  void open(const std::string& host, uint64_t session, const std::string& key);
  void close() { socket_.reset(); }
  void send();
  // Whether a heartbeat of the host has arrived since the last call.
  bool receive();

 private:
  UniqueFd socket_;
  uint64_t session_ = 0, sent_ = 0, received_ = 0;
  std::string key_;
};

}  // namespace fleet
