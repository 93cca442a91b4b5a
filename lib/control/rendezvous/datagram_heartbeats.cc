#include "rendezvous/datagram_heartbeats.h"

#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "rendezvous/peer.h"

namespace fleet {
namespace {

constexpr std::string_view kMagic = "fleetrun heartbeat 1:";
constexpr size_t kKeyBytes = 32, kCodeBytes = 16;
constexpr size_t kCodeAt = kMagic.size() + 1 + 2 * sizeof(uint64_t);
constexpr size_t kBytes = kCodeAt + kCodeBytes;
// Packet loss is random: the second copy often arrives.
constexpr int kCopies = 2;
// Bounds the work of one call, so that a flood cannot block the rendezvous.
constexpr size_t kReadAtOnce = 4096;

void append(std::string* bytes, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(value >> shift));
}

uint64_t number_at(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

std::string code_of(std::string_view bytes, std::string_view key) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out, &size);
  return {reinterpret_cast<char*>(out), kCodeBytes};
}

struct Received {
  std::string_view bytes;  // into `buffer`
  DatagramPath path;
  char buffer[kBytes + 1];  // one extra byte detects a datagram that is too long
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

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

UniqueFd bound_socket(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  const Addresses addresses(found, &::freeaddrinfo);
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

std::string encode_heartbeat(const DatagramHeartbeat& heartbeat, std::string_view key) {
  std::string bytes(kMagic);
  bytes.push_back(heartbeat.of_host ? 'h' : 'n');
  append(&bytes, heartbeat.session);
  append(&bytes, heartbeat.count);
  return bytes + code_of(bytes, key);
}

uint64_t claimed_session(std::string_view bytes) {
  if (bytes.size() != kBytes || !bytes.starts_with(kMagic)) return 0;
  return number_at(bytes, kMagic.size() + 1);
}

bool decode_heartbeat(std::string_view bytes, std::string_view key, DatagramHeartbeat* heartbeat) {
  if (claimed_session(bytes) == 0) return false;
  const std::string code = code_of(bytes.substr(0, kCodeAt), key);
  if (CRYPTO_memcmp(code.data(), bytes.data() + kCodeAt, kCodeBytes) != 0) return false;
  heartbeat->of_host = bytes[kMagic.size()] == 'h';
  heartbeat->session = number_at(bytes, kMagic.size() + 1);
  heartbeat->count = number_at(bytes, kMagic.size() + 1 + sizeof(uint64_t));
  return true;
}

bool HostHeartbeats::open(const std::string& host, int port) {
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = brackets ? host.substr(1, host.size() - 2) : host;
  const bool all = name.empty() || name == "0.0.0.0" || name == "::";
  socket_ = bound_socket(all ? "::" : name, port);
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
  for (size_t i = 0; socket_ && i < kReadAtOnce && receive_one(socket_.get(), &received); ++i) {
    const auto node = nodes_.find(claimed_session(received.bytes));
    DatagramHeartbeat heartbeat;
    if (node == nodes_.end() || !decode_heartbeat(received.bytes, node->second.key, &heartbeat))
      continue;
    if (heartbeat.of_host || heartbeat.count <= node->second.received)
      continue;  // replayed, or a copy
    node->second.received = heartbeat.count;
    node->second.path = received.path;
    sessions.push_back(heartbeat.session);
  }
  return sessions;
}

void HostHeartbeats::send() {
  for (auto& [session, node] : nodes_) {
    if (node.received == 0) continue;
    send_copies(socket_.get(), encode_heartbeat({session, ++node.sent, true}, node.key),
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
    send_copies(socket_.get(), encode_heartbeat({session_, ++sent_, false}, key_), nullptr);
}

bool NodeHeartbeats::receive() {
  bool any = false;
  Received received;
  for (size_t i = 0; socket_ && i < kReadAtOnce; ++i) {
    if (!receive_one(socket_.get(), &received)) {
      if (errno == ECONNREFUSED) continue;  // caused by an earlier datagram that was sent
      break;
    }
    DatagramHeartbeat heartbeat;
    if (!decode_heartbeat(received.bytes, key_, &heartbeat) || !heartbeat.of_host) continue;
    if (heartbeat.session != session_ || heartbeat.count <= received_) continue;
    received_ = heartbeat.count;
    any = true;
  }
  return any;
}

}  // namespace fleet
