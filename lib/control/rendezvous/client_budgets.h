// Limits on unauthenticated clients, per address and in total: connections, calls, incomplete
// messages. Pure: no sockets, and the time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
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
  size_t tokens(Time now) {
    fill(now);
    return tokens_ < 1 ? 0 : static_cast<size_t>(tokens_);
  }
  // Takes tokens even beyond those available; available_in() then includes the deficit.
  void take_anyway(double tokens, Time now) {
    fill(now);
    tokens_ -= tokens;
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

// Calls in progress, new calls, and bytes of incomplete messages. Not thread-safe.
class StreamBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    size_t per_address = 1'024, total = 2'048;  // calls in progress
    // New calls: per connection regardless of others; beyond that per address; and in total.
    TokenBucket::Rate connection_opens{8, 8}, address_opens{1'000, 2'000}, all_opens{4'000, 4'000};
    size_t partial_bytes = 32 << 20;  // of incomplete messages, in all
  };
  // The connection with the most calls of the address with the most.
  struct Excess {
    std::string address, peer;
  };

  StreamBudget(Limits limits, Time now) : limits_(limits), opens_(limits.all_opens, now) {}

  void admit(const std::string& address, const std::string& peer, Time now);

  // The current state of a connection, and the number of streams opened since the last call.
  void update(const std::string& address, const std::string& peer, size_t streams, uint64_t opened,
              size_t partial, Time now);
  void closed(const std::string& address, const std::string& peer, Time now);
  // After update() of a connection of `address`: the connection with too many streams, if any.
  std::optional<Excess> excess(const std::string& address) const;
  // The number of streams that this connection may open now; wait_for(): the time until the next.
  size_t may_open(const std::string& address, const std::string& peer, Time now);
  std::chrono::milliseconds wait_for(const std::string& address, const std::string& peer, Time now);
  // Whether this connection may send more of its message: there is room, or its message is the
  // oldest incomplete one.
  bool may_continue(const std::string& peer) const;

  size_t streams() const { return streams_; }
  size_t partial_bytes() const { return partial_; }

 private:
  struct Use {
    explicit Use(TokenBucket opens) : opens(opens) {}
    TokenBucket opens;
    size_t streams = 0, partial = 0;
    uint64_t begun = 0;  // ordinal of its incomplete message; 0: none
  };
  struct Address {
    explicit Address(TokenBucket opens) : opens(opens) {}
    TokenBucket opens;
    size_t streams = 0;
    std::map<std::string, Use> connections;
  };
  Use* find(const std::string& address, const std::string& peer, Address** of);
  void set_partial(Use* use, const std::string& peer, size_t partial);
  void forget_unused(Time now);

  Limits limits_;
  TokenBucket opens_;
  std::unordered_map<std::string, Address> addresses_;
  std::map<uint64_t, std::string> messages_;  // the peers of incomplete messages, oldest first
  uint64_t last_message_ = 0;
  size_t forget_at_ = 64;  // number of addresses that triggers forget_unused()
  size_t streams_ = 0, partial_ = 0;
};

// An address may have a number of unauthenticated connections, and beyond these so many more per
// second. All addresses together have a limit; at that limit, the address with the most connections
// gives one up. A connection that proves the secret, by its first call, no longer counts. Not
// thread-safe.
class ConnectionBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    double burst = 1024;     // a node has a connection for its launcher and one for each rank
    double per_second = 16;  // about 1 % of a core, since each costs a TLS handshake
    size_t total = 1024;     // unauthenticated connections at a time
    // The one to close if there are too many: the oldest, because a legitimate handshake is short;
    // or the newest, if the server has no secret to prove.
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
