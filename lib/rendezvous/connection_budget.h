// How many connections strangers may open: of one address so many that have shown nothing yet, and
// when those are used up so many more a second. Who shows the secret, by a first call, costs
// nothing in the end. Pure: no sockets, and the time is told.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <unordered_map>

namespace fleet {

// Not thread-safe.
class ConnectionBudget {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    double at_once = 1024;    // a node has a connection for its launcher and one for each rank
    double each_second = 16;  // about 1 % of a core, where each costs a greeting
  };

  ConnectionBudget() : ConnectionBudget(Limits()) {}
  explicit ConnectionBudget(Limits limits) : limits_(limits) {}

  // A new connection from `address`, told apart from its others by `peer`. false: it is one too
  // many.
  bool admit(const std::string& address, const std::string& peer, Time now);
  // A call came over this connection; nothing where that is known, or the connection is not.
  void proved(const std::string& address, const std::string& peer, Time now);
  // Connections that count against an address.
  size_t unproved() const { return unproved_; }
  size_t addresses() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens;
    Time filled;
    std::set<std::string> unproved;
  };
  void fill(Bucket& bucket, Time now) const;
  void forget_full(Time now);

  Limits limits_;
  std::unordered_map<std::string, Bucket> buckets_;
  size_t unproved_ = 0;
  size_t look_at_ = 64;  // look for full ones when there are so many,
  Time look_again_{};    // or then
};

}  // namespace fleet
