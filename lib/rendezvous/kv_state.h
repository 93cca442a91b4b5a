// The key-value store of a job as pure logic: values of the current epoch, and those who wait for
// them. The time is an argument; answers are collected until somebody takes and runs them. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"

namespace fleet {

class KvState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Ticket = uint64_t;
  // Exactly one of value and error.
  struct Answer {
    std::string value;
    std::optional<Error> error;
  };
  using Done = std::function<void(Answer)>;

  // What a job may store: a bound against programs gone wild, not a target.
  struct Limits {
    size_t key = 1024;
    size_t value = 8u << 20;
    size_t total = 512u << 20;
    size_t keys = 4'000'000;
    size_t waiters = 1'000'000;
  };

  KvState() = default;
  explicit KvState(Limits limits) : limits_(limits) {}

  // A new epoch begins, empty: those who wait in the old one get kStale.
  void open(int epoch);
  // The job is over: everyone waiting, and every later call, gets `why`.
  void close(const Error& why);

  std::optional<Error> set(int epoch, const std::string& key, std::string_view value);
  Answer add(int epoch, const std::string& key, int64_t amount);  // the sum as decimal text
  // Answers at once where it can, else when the key is set or at the deadline (kTimeout). The
  // ticket cancels a wait.
  Ticket get(int epoch, const std::string& key, Time now, Time deadline, Done done);
  bool cancel(Ticket ticket);  // whether it waited still

  void advance(Time now);
  std::optional<Time> next_deadline() const;
  // Answers that are ready, to be run by the caller outside of its locks.
  std::vector<std::function<void()>> take_ready() { return std::exchange(ready_, {}); }
  size_t waiters() const { return waits_.size(); }

 private:
  struct Wait {
    std::string key;
    Time since, deadline;
    Done done;
  };
  std::optional<Error> refusal(int epoch, const std::string& key) const;
  std::optional<Error> store(const std::string& key, std::string_view value);
  void answer(Ticket ticket, Answer with);

  Limits limits_;
  int epoch_ = 0;  // 0: the job does not run yet
  std::optional<Error> closed_;
  std::unordered_map<std::string, std::string> values_;
  size_t bytes_ = 0;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Wait> waits_;
  std::unordered_map<std::string, std::set<Ticket>> by_key_;
  std::set<std::pair<Time, Ticket>> by_deadline_;
  std::vector<std::function<void()>> ready_;
};

}  // namespace fleet
