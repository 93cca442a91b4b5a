// How many connections strangers may have: of one address so many that have shown nothing yet, and
// when those are used up so many more a second; and so many of all addresses together, where the
// address that has the most gives one up for another's. A connection that shows the secret, by a
// first call, is not counted from then on. Pure: no sockets, and the time is passed in.
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
    double at_once = 1024;    // a node has a connection for its launcher and one for each rank
    double each_second = 16;  // about 1 % of a core, where each costs a greeting
    size_t in_all = 1024;     // unproved ones at a time
    // Which one makes room where there are too many: the oldest, which a friend's is not, for its
    // greeting is short; or the newest, where nobody ever shows a secret.
    bool oldest_goes = true;
  };
  struct Decision {
    bool admitted = false;
    std::string close;  // the connection that makes room for it; "": none
  };

  ConnectionBudget() : ConnectionBudget(Limits()) {}
  explicit ConnectionBudget(Limits limits) : limits_(limits) {}

  // A new connection from `address`, told apart from its others by `peer`. Where another is to be
  // closed for it, that one is no longer counted.
  Decision admit(const std::string& address, const std::string& peer, Time now);
  // A call came over this connection; nothing where that is known, or the connection is not.
  void proved(const std::string& address, const std::string& peer, Time now);
  // It is closed. well: it has done nothing wrong, and costs its address nothing.
  void closed(const std::string& address, const std::string& peer, bool well, Time now);
  // Connections that count.
  size_t unproved() const { return unproved_; }
  size_t addresses() const { return addresses_.size(); }

 private:
  struct Address {
    explicit Address(TokenBucket tokens) : tokens(tokens) {}
    TokenBucket tokens;
    std::list<std::string> in_order;  // its unproved connections, the oldest first
    std::unordered_map<std::string, std::list<std::string>::iterator> unproved;
  };
  Address& largest();
  bool remove(Address& of, const std::string& peer);
  void forget_full(Time now);

  Limits limits_;
  std::unordered_map<std::string, Address> addresses_;
  size_t unproved_ = 0;
  size_t forget_at_ = 64;  // when there are so many addresses
};

}  // namespace fleet
