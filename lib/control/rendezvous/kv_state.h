// A job's key-value store as pure logic: the values of the current generation and the pending
// waits. The time is an argument; answers are collected until take_ready(). Not thread-safe.
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
#include "store/store.h"

namespace fleet {

class KvState {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Ticket = uint64_t;
  using Answer = AsyncStore::Answer;
  using Done = AsyncStore::Done;

  // Limits of a job's store: protection against runaway programs, not targets.
  struct Limits {
    size_t key = 1024;
    size_t value = 8u << 20;
    size_t total = 512u << 20;
    size_t keys = 4'000'000;
    size_t waiters = 1'000'000;
  };

  KvState() = default;
  explicit KvState(Limits limits) : limits_(limits) {}

  // Begins a new generation with an empty store; waits of the old one get kStale.
  void open(int generation);
  // The job is over: all pending waits and all later calls get `why`.
  void close(const Error& why);

  std::optional<Error> set(int generation, const std::string& key, std::string_view value);
  Answer add(int generation, const std::string& key,
             int64_t amount);  // returns the sum as decimal text
  // Answers at once if possible, else when the key is set or at the deadline (kTimeout). The ticket
  // cancels a wait.
  Ticket get(int generation, const std::string& key, Time now, Time deadline, Done done);
  bool cancel(Ticket ticket);  // returns whether it was still waiting

  void advance(Time now);
  std::optional<Time> next_deadline() const;
  // Answers that are ready; the caller runs them without holding its locks.
  std::vector<std::function<void()>> take_ready() { return std::exchange(ready_, {}); }
  size_t waiters() const { return waits_.size(); }

 private:
  struct Wait {
    std::string key;
    Time since, deadline;
    Done done;
  };
  std::optional<Error> refusal(int generation, const std::string& key) const;
  std::optional<Error> store(const std::string& key, std::string_view value);
  void answer(Ticket ticket, Answer with);

  Limits limits_;
  int generation_ = 0;  // 0: the job is not running yet
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
