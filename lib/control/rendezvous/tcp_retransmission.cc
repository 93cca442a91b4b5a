#include "rendezvous/tcp_retransmission.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <filesystem>

#include "base/text.h"
#include "rendezvous/peer.h"

namespace fleet {
namespace {

constexpr int kRtoMaxOption = 44;  // TCP_RTO_MAX_MS, newer than the C library
constexpr int kRtoMaxMs = 1'000;   // the smallest accepted value

}  // namespace

void limit_retransmission_backoff(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, kRtoMaxOption, &kRtoMaxMs, sizeof kRtoMaxMs);
}

void limit_retransmission_backoff_to(const std::string& peer) {
  const auto wanted = peer_of(peer);
  if (!wanted) return;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    long long fd = -1;
    if (!parse_int(entry.path().filename().string(), &fd)) continue;
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const int socket = static_cast<int>(fd);
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    const bool ip = name.ss_family == AF_INET || name.ss_family == AF_INET6;
    if (ip && peer_of(name).connection == wanted->connection) limit_retransmission_backoff(socket);
  }
}

}  // namespace fleet
