#include "transport/datagram_heartbeats.h"

#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "transport/certificates.h"
#include "transport/tcp_listener.h"

namespace fleet {
namespace {

constexpr size_t kKeyBytes = 32, kCodeBytes = 16;
constexpr size_t kMost = 64;  // bytes of a datagram; more are none of ours
// Packet loss is random: the second copy often arrives.
constexpr int kCopies = 2;
// Bounds the work of one call, so that a flood cannot block the rendezvous.
constexpr size_t kReadAtOnce = 4096;

std::string code_of(std::string_view bytes, std::string_view key) {
  return hmac_sha256(key, bytes).substr(0, kCodeBytes);
}

wire::DatagramHeartbeat message_of(uint64_t session, uint64_t count, bool of_host) {
  wire::DatagramHeartbeat heartbeat;
  heartbeat.set_session(session);
  heartbeat.set_count(count);
  heartbeat.set_of_host(of_host);
  return heartbeat;
}

struct Received {
  std::string_view bytes;  // into `buffer`
  DatagramPath path;
  char buffer[kMost + 1];  // one extra byte detects a datagram that is too long
};

// The control message that sends a datagram from the address at which another one arrived.
std::string answer_from(msghdr* message) {
  alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(in6_pktinfo))] = {};
  msghdr answer{};
  answer.msg_control = buffer;
  answer.msg_controllen = sizeof buffer;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    cmsghdr* const own = CMSG_FIRSTHDR(&answer);
    const bool v4 = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO;
    const bool v6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO;
    if (!v4 && !v6) continue;
    std::memcpy(own, part, part->cmsg_len);
    // The route selects the interface.
    if (v4) reinterpret_cast<in_pktinfo*>(CMSG_DATA(own))->ipi_ifindex = 0;
    if (v6) reinterpret_cast<in6_pktinfo*>(CMSG_DATA(own))->ipi6_ifindex = 0;
    return {buffer, v4 ? CMSG_SPACE(sizeof(in_pktinfo)) : CMSG_SPACE(sizeof(in6_pktinfo))};
  }
  return {};
}

bool receive_one(int fd, Received* received) {
  alignas(cmsghdr) char control[256];
  iovec part = {received->buffer, sizeof received->buffer};
  msghdr message{};
  message.msg_name = &received->path.peer;
  message.msg_namelen = sizeof received->path.peer;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t size = ::recvmsg(fd, &message, MSG_DONTWAIT);
  if (size < 0) return false;
  received->bytes = {received->buffer, static_cast<size_t>(size)};
  received->path.peer_size = message.msg_namelen;
  received->path.control = answer_from(&message);
  return true;
}

void send_copies(int fd, const std::string& bytes, DatagramPath* path) {
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (path) {
    message.msg_name = &path->peer;
    message.msg_namelen = path->peer_size;
    message.msg_control = path->control.empty() ? nullptr : path->control.data();
    message.msg_controllen = path->control.size();
  }
  // A datagram that cannot be sent counts as lost.
  for (int i = 0; i < kCopies; ++i) ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

UniqueFd bound_socket(const std::string& host, int port) {
  const Addresses found = addresses_of(host, std::to_string(port), SOCK_DGRAM,
                                       AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found) return {};
  UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int on = 1, off = 0;
  if (found->ai_family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  } else {
    ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  }
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0) fd.reset();
  return fd;
}

}  // namespace

std::string encode_heartbeat(const wire::DatagramHeartbeat& heartbeat, std::string_view key) {
  const std::string bytes = heartbeat.SerializeAsString();
  return code_of(bytes, key) + bytes;
}

std::optional<wire::DatagramHeartbeat> decode_heartbeat(std::string_view bytes,
                                                        const KeyOfSession& key_of) {
  if (bytes.size() < kCodeBytes || bytes.size() > kMost) return std::nullopt;
  const std::string_view body = bytes.substr(kCodeBytes);
  wire::DatagramHeartbeat heartbeat;
  if (!heartbeat.ParseFromArray(body.data(), static_cast<int>(body.size()))) return std::nullopt;
  const std::string* key = key_of(heartbeat.session());
  if (!key || CRYPTO_memcmp(code_of(body, *key).data(), bytes.data(), kCodeBytes) != 0) {
    return std::nullopt;
  }
  return heartbeat;
}

bool HostHeartbeats::open(const std::string& host, int port) {
  const bool all = is_any_address(host);
  socket_ = bound_socket(all ? "::" : host, port);
  if (all && !socket_) socket_ = bound_socket("0.0.0.0", port);
  return static_cast<bool>(socket_);
}

std::string HostHeartbeats::key_of(uint64_t session) {
  if (!socket_) return {};
  std::string& key = nodes_[session].key;
  if (!key.empty()) return key;
  unsigned char bytes[kKeyBytes];
  FLEET_CHECK(RAND_bytes(bytes, sizeof bytes) == 1, "no random numbers");
  return key = std::string(reinterpret_cast<char*>(bytes), sizeof bytes);
}

std::vector<uint64_t> HostHeartbeats::receive() {
  std::vector<uint64_t> sessions;
  Received received;
  const auto key_of = [this](uint64_t session) {
    const auto node = nodes_.find(session);
    return node == nodes_.end() ? nullptr : &node->second.key;
  };
  for (size_t i = 0; socket_ && i < kReadAtOnce && receive_one(socket_.get(), &received); ++i) {
    const auto heartbeat = decode_heartbeat(received.bytes, key_of);
    if (!heartbeat || heartbeat->of_host()) continue;
    Node& node = nodes_.at(heartbeat->session());
    if (heartbeat->count() <= node.received) continue;  // replayed, or a copy
    node.received = heartbeat->count();
    node.path = received.path;
    sessions.push_back(heartbeat->session());
  }
  return sessions;
}

void HostHeartbeats::send() {
  for (auto& [session, node] : nodes_) {
    if (node.received == 0) continue;
    send_copies(socket_.get(), encode_heartbeat(message_of(session, ++node.sent, true), node.key),
                &node.path);
  }
}

void NodeHeartbeats::open(const std::string& host, uint64_t session, const std::string& key) {
  if (key.empty() || (socket_ && session == session_ && key == key_)) return;
  socket_.reset();
  sockaddr_storage address{};
  const socklen_t size = socket_address(host, &address);
  if (size == 0) return;
  UniqueFd fd(::socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return;
  socket_ = std::move(fd);
  session_ = session;
  key_ = key;
  sent_ = received_ = 0;
}

void NodeHeartbeats::send() {
  if (socket_)
    send_copies(socket_.get(), encode_heartbeat(message_of(session_, ++sent_, false), key_),
                nullptr);
}

bool NodeHeartbeats::receive() {
  bool any = false;
  Received received;
  for (size_t i = 0; socket_ && i < kReadAtOnce; ++i) {
    if (!receive_one(socket_.get(), &received)) {
      if (errno == ECONNREFUSED) continue;  // caused by an earlier datagram that was sent
      break;
    }
    const auto heartbeat = decode_heartbeat(
        received.bytes, [this](uint64_t of) { return of == session_ ? &key_ : nullptr; });
    if (!heartbeat || !heartbeat->of_host() || heartbeat->count() <= received_) continue;
    received_ = heartbeat->count();
    any = true;
  }
  return any;
}

}  // namespace fleet
