// TCP sockets: those of a server, the thread that accepts their connections, and how soon lost data
// are sent again.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/thread.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// The other end of a connection, as the connection budget identifies it (client_budgets.h).
struct Peer {
  // "10.0.0.1". For IPv6 the network, "fd00::/64", because one client usually controls all of it.
  std::string address;
  std::string connection;  // "10.0.0.1 4711": unique among open connections
  bool local = false;      // loopback
};

// AF_INET or AF_INET6; an IPv4-mapped IPv6 address counts as IPv4.
Peer peer_of(const sockaddr_storage& name);
// From gRPC's notation: "ipv4:10.0.0.1:4711", "ipv6:%5Bfd00::1%5D:4711". nullopt if it is neither.
std::optional<Peer> peer_of(const std::string& uri);
// Like peer_of(), as a socket address; returns its size, 0 if it is neither.
socklen_t socket_address(const std::string& uri, sockaddr_storage* address);

// Whether a server at this address listens at all of this host's: "", "0.0.0.0", "::", "[::]".
bool is_any_address(const std::string& host);

// The result of getaddrinfo() for a name or an address, which may be in brackets; null: nothing.
// `port`: "" for none.
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
Addresses addresses_of(const std::string& host, const std::string& port, int type, int flags);

// The port to which a socket is bound.
int port_of(int socket);

struct TcpListeners {
  std::vector<UniqueFd> sockets;  // one per address, all at the same port
  int port = 0;
  int error = 0;  // errno if there are no sockets; EADDRNOTAVAIL also for an unknown name
};

// Takes the port (0: a free one) of `host`: an address, a name, or "", "0.0.0.0" or "::" for all.
// user_timeout: a peer whose kernel acknowledges nothing for this long counts as lost.
TcpListeners listen_tcp(const std::string& host, int port, std::chrono::milliseconds user_timeout);
// The same, where "0.0.0.0" stands for IPv4 only.
TcpListeners listen_at(const std::string& host, int port, std::chrono::milliseconds user_timeout);

// TCP doubles its wait after each failed retry, up to a minute. On networks that lose packets, that
// is too long for control messages, which are few.
//
// From now on, this socket and the ones it accepts retry soon: first at constant intervals and, if
// the kernel supports it (6.15), never after more than a second.
void limit_retransmission_backoff(int socket);
// Like limit_retransmission_backoff(), for this process's connections to a peer in gRPC's notation
// ("ipv4:10.0.0.1:4711"), because gRPC does not expose its sockets.
void limit_retransmission_backoff_to(const std::string& peer);

// Calls use() with each of this process's sockets that is connected to a peer in gRPC's notation
// and, if own_port is not 0, bound to that port, because gRPC does not expose its sockets.
void for_each_socket_to(const std::string& peer, int own_port,
                        const std::function<void(int socket)>& use);
// From now on the kernel ends this connection if it is idle and the peer's kernel does not answer
// for about this long (3 s at least). A suspended process's kernel answers.
void watch_peer_host(int socket, std::chrono::milliseconds timeout);

// Accepts the connections of a listening, non-blocking socket, also a Unix one, in a loop. If no
// descriptor is left, they wait in the kernel's queue until one is free. Not thread-safe: use it in
// the loop's thread, or while the loop does not run.
class LoopListener {
 public:
  // Must not destroy the listener. The connection is non-blocking and close-on-exec.
  using OnConnection = std::function<void(UniqueFd connection, const sockaddr_storage& peer)>;

  LoopListener(EventLoop& loop, UniqueFd socket, OnConnection on_connection)
      : socket_(loop, std::move(socket)), pause_(loop), on_connection_(std::move(on_connection)) {}
  void start() { wait(); }
  void close();

 private:
  void wait();
  void accept_some();
  void back_off(int error);

  LoopDescriptor socket_;
  LoopTimer pause_;
  const OnConnection on_connection_;
  bool warned_ = false;  // that no descriptor is left
};

// A thread that accepts the connections of listening sockets. Call add() before start(). Call
// stop() and the destructor from any thread but the loop's own.
class AcceptLoop {
 public:
  using OnConnection = LoopListener::OnConnection;  // runs in the loop's thread

  AcceptLoop(std::string name, OnConnection on_connection);
  ~AcceptLoop();  // stop()
  AcceptLoop(const AcceptLoop&) = delete;

  void add(UniqueFd listener);  // does not block
  void start();
  void stop_listening();  // closes the listeners; the thread keeps running; idempotent
  void stop();            // stops listening and ends the thread; idempotent
  bool running() const { return thread_.joinable(); }
  // For other work in the loop's thread.
  EventLoop& loop() { return loop_; }

 private:
  const std::string name_;
  const OnConnection on_connection_;
  EventLoop loop_;
  std::list<LoopListener> listeners_;
  Thread thread_;
};

}  // namespace fleet
