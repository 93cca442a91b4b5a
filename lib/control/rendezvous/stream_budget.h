// Limits on unauthenticated peers, per address and in total: calls in progress, new calls, and
// bytes of incomplete messages. Pure: no sockets, and the time is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "rendezvous/token_bucket.h"

namespace fleet {

// Not thread-safe.
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
  // How many streams this connection may open now; wait_for() says when the next is allowed.
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

}  // namespace fleet
