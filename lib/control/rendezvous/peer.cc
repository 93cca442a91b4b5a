#include "rendezvous/peer.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>

#include "base/text.h"

namespace fleet {
namespace {

namespace ip = boost::asio::ip;

Peer peer_at(ip::address address, int port) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  Peer peer{address.to_string(), {}, address.is_loopback()};
  peer.connection = peer.address + ' ' + std::to_string(port);
  if (address.is_v6()) {
    auto network = address.to_v6().to_bytes();
    std::fill(network.begin() + 8, network.end(), 0);
    peer.address = ip::address_v6(network).to_string() + "/64";
  }
  return peer;
}

std::optional<ip::tcp::endpoint> endpoint_of(const std::string& uri) {
  const size_t begin = uri.find(':'), end = uri.rfind(':');
  long long port = 0;
  if (begin >= end || !parse_int(uri.substr(end + 1), &port)) return std::nullopt;
  std::string host = uri.substr(begin + 1, end - begin - 1);
  if (host.starts_with("%5B") && host.ends_with("%5D")) host = host.substr(3, host.size() - 6);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (const size_t scope = host.find("%25"); scope != host.npos) host.erase(scope + 1, 2);
  boost::system::error_code error;
  const auto address = ip::make_address(host, error);
  if (error) return std::nullopt;
  return ip::tcp::endpoint(address, static_cast<unsigned short>(port));
}

}  // namespace

Peer peer_of(const sockaddr_storage& name) {
  ip::tcp::endpoint from;
  const size_t size = name.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(from.data(), &name, size);
  from.resize(size);
  return peer_at(from.address(), from.port());
}

std::optional<Peer> peer_of(const std::string& uri) {
  const auto endpoint = endpoint_of(uri);
  if (!endpoint) return std::nullopt;
  return peer_at(endpoint->address(), endpoint->port());
}

socklen_t socket_address(const std::string& uri, sockaddr_storage* address) {
  const auto endpoint = endpoint_of(uri);
  if (!endpoint) return 0;
  std::memcpy(address, endpoint->data(), endpoint->size());
  return static_cast<socklen_t>(endpoint->size());
}

}  // namespace fleet
