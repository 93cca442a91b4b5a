// Heartbeats as datagrams, beside those of the stream. Where a network loses packets, TCP holds
// back whatever follows a lost one, for seconds; of datagrams the others still arrive. Each shows
// that the other end lives. A firewall that lets only TCP through leaves the beats of the stream.
//
// A datagram names its session and has a count and an HMAC-SHA256 with the session's key, which the
// Welcome brings. What is forged, replayed or of no session is dropped, and nothing is answered.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace fleet {

// One beat, without its address.
struct DatagramBeat {
  uint64_t session = 0, count = 0;
  bool of_host = false;  // else of the node
};
std::string encode_beat(const DatagramBeat& beat, std::string_view key);
// The session that these bytes claim; 0 where they are no beat. For its key.
uint64_t claimed_session(std::string_view bytes);
// Whether these bytes are a beat with this key; what it says.
bool decode_beat(std::string_view bytes, std::string_view key, DatagramBeat* beat);

// Where a datagram came from, and which of this host's addresses it was sent to.
struct DatagramPath {
  sockaddr_storage peer{};
  socklen_t peer_size = 0;
  std::string control;  // for sendmsg(): the answer leaves from that address
};

// The host's end. Not thread-safe.
class HostBeats {
 public:
  // Takes the UDP port at the address (or all: "", "0.0.0.0", "::"). False where it cannot be had.
  bool open(const std::string& host, int port);
  // For the Welcome of this session; the same each time. "" where it is not open.
  std::string key_of(uint64_t session);
  void forget(uint64_t session) { nodes_.erase(session); }
  // The sessions that have beaten since the last call.
  std::vector<uint64_t> receive();
  // A beat to every session that has.
  void send();

 private:
  struct Node {
    std::string key;
    uint64_t heard = 0, sent = 0;  // counts
    DatagramPath path;             // of the last one heard
  };
  UniqueFd socket_;
  std::map<uint64_t, Node> nodes_;
};

// A node's end. Not thread-safe.
class NodeBeats {
 public:
  // host: as gRPC names the other end of the stream ("ipv4:10.0.0.1:6768"). Opens nothing where
  // there is no key.
  void open(const std::string& host, uint64_t session, const std::string& key);
  void close() { socket_.reset(); }
  void send();
  // Whether the host has beaten since the last call.
  bool receive();

 private:
  UniqueFd socket_;
  uint64_t session_ = 0, sent_ = 0, heard_ = 0;
  std::string key_;
};

}  // namespace fleet
