// Limits on connections of unauthenticated clients, per address and in total. Pure: no sockets, and
// the time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

namespace fleet {

// A rate limit with a burst: this many at once, then this many per second. Not thread-safe; the
// time never runs backwards.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Rate {
    double burst = 0;
    double per_second = 0;
  };

  TokenBucket(Rate rate, Time now) : rate_(rate), tokens_(rate.burst), filled_(now) {}

  bool take(Time now) {
    fill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  void give_back(Time now) {
    fill(now);
    tokens_ = std::min(rate_.burst, tokens_ + 1);
  }
  bool full(Time now) const {
    TokenBucket then = *this;
    then.fill(now);
    return then.tokens_ >= rate_.burst;
  }
  // Time until a token is available; 0 if one is.
  std::chrono::milliseconds available_in(Time now) {
    fill(now);
    if (tokens_ >= 1) return std::chrono::milliseconds(0);
    return std::chrono::milliseconds(
        1 + static_cast<int64_t>((1 - tokens_) / std::max(rate_.per_second, 1e-3) * 1e3));
  }

 private:
  void fill(Time now) {
    const double passed = std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(rate_.burst, tokens_ + passed * rate_.per_second);
    filled_ = now;
  }

  Rate rate_;
  double tokens_;
  Time filled_;
};

// An address may have a number of unauthenticated connections, and beyond these so many more per
// second. All addresses together have a limit; at that limit, the address with the most connections
// gives its oldest up, because a legitimate handshake is short. A connection no longer counts from
// its first call on, which only a client with the secret can make. Not thread-safe.
class ConnectionBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    double burst = 1024;     // a node has a connection for its launcher and one for each rank
    double per_second = 16;  // about 1 % of a core, since each costs a TLS handshake
    size_t total = 1024;     // unauthenticated connections at a time
  };
  struct Decision {
    bool admitted = false;
    std::string close;  // the connection to close for it; "": none
  };

  ConnectionBudget() : ConnectionBudget(Limits()) {}
  explicit ConnectionBudget(Limits limits) : limits_(limits) {}

  // A new connection from `address`; `peer` is unique within the address. A connection that must be
  // closed for it no longer counts.
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
