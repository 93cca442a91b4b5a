// Limits on connections from unauthenticated peers. An address may have a number of unauthenticated
// connections, and beyond these so many more per second. All addresses together have a limit; at
// that limit, the address with the most connections gives one up. A connection that proves the
// secret, by its first call, no longer counts. Pure: no sockets, and the time is an argument.
#pragma once

#include <chrono>
#include <list>
#include <string>
#include <unordered_map>

#include "rendezvous/token_bucket.h"

namespace fleet {

// Not thread-safe.
class ConnectionBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    double burst = 1024;     // a node has a connection for its launcher and one for each rank
    double per_second = 16;  // about 1 % of a core, since each costs a TLS handshake
    size_t total = 1024;     // unauthenticated connections at a time
    // Which one to close when there are too many: the oldest, because a legitimate handshake is
    // short; or the newest, if the server has no secret to prove.
    bool evict_oldest = true;
  };
  struct Decision {
    bool admitted = false;
    std::string close;  // the connection to close for it; "": none
  };

  ConnectionBudget() : ConnectionBudget(Limits()) {}
  explicit ConnectionBudget(Limits limits) : limits_(limits) {}

  // A new connection from `address`; `peer` is unique within the address. A connection that is to
  // be closed for it no longer counts.
  Decision admit(const std::string& address, const std::string& peer, Time now);
  // A call arrived over this connection. No effect if that is known already or the connection is
  // unknown.
  void authenticated(const std::string& address, const std::string& peer, Time now);
  // The connection closed. well: it did nothing wrong and costs its address nothing.
  void closed(const std::string& address, const std::string& peer, bool well, Time now);
  // Number of connections that count.
  size_t unauthenticated() const { return unauthenticated_; }
  size_t addresses() const { return addresses_.size(); }

 private:
  struct Address {
    explicit Address(TokenBucket tokens) : tokens(tokens) {}
    TokenBucket tokens;
    std::list<std::string> in_order;  // its unauthenticated connections, oldest first
    std::unordered_map<std::string, std::list<std::string>::iterator> unauthenticated;
  };
  Address& largest();
  bool remove(Address& of, const std::string& peer);
  void forget_full(Time now);

  Limits limits_;
  std::unordered_map<std::string, Address> addresses_;
  size_t unauthenticated_ = 0;
  size_t forget_at_ = 64;  // number of addresses that triggers forget_full()
};

}  // namespace fleet
