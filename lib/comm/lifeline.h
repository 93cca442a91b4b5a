// A TCP connection between every two ranks of a group, over which they notice each other's death,
// tell each other what went wrong, and ask who is behind. It carries no data.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "base/thread.h"
#include "comm/factory.h"
#include "comm/fault.h"

namespace fleet {

class Lifeline {
 public:
  // Collective: returns when every rank is connected; kTimeout names those that did not come.
  // `failed` is called, from a thread of the lifeline, with each failure noticed or heard of.
  Lifeline(const CommOptions& options, const Group& group,
           std::function<void(const Error&)> failed);
  ~Lifeline();  // says goodbye: the others do not count this rank as dead
  Lifeline(const Lifeline&) = delete;

  // Tells everybody else, as far as they can be reached. The first failure only; one that was
  // noticed or heard of is passed on without being asked, so that whoever leaves after a failure
  // has told it before.
  void tell(const Error& error);
  // Counts an operation of a group (any number that its ranks agree on) and returns which it is.
  uint64_t enter(uint64_t group_id);
  // Who of `ranks` keeps the others from operation `count` of the group: those that do not answer
  // within the time (stopped); if all do, those that are furthest behind. Not from the lifeline's
  // own thread.
  std::vector<int> behind(const std::vector<int>& ranks, uint64_t group_id, uint64_t count,
                          std::chrono::milliseconds patience);
  bool has_left(int rank) const;

 private:
  enum Kind : uint32_t { kHello, kBye, kFault, kAsk, kAnswer };
  struct Message {
    Kind kind;
    uint32_t rank;  // of the sender
    uint64_t group_id, count;
    Fault fault;
  };
  struct Peer {
    UniqueFd fd;
    bool left = false, gone = false;
    bool answered = false;
    uint64_t count = 0;  // of the last answer
    size_t filled = 0;   // of `incoming`
    Message incoming;
  };

  std::string key(int rank) const { return options_.group + "/lifeline/" + std::to_string(rank); }
  UniqueFd listen();
  void connect_to(int rank, const std::string& address);
  void accept_others(int listener, std::chrono::steady_clock::time_point deadline);
  void run();
  void receive(int rank);
  void handle(int rank, const Message& message);
  void lost(int rank);
  void fail(const Error& error);
  void send(int rank, Message message);

  const CommOptions options_;
  const Group group_;
  const std::function<void(const Error&)> failed_;
  mutable std::mutex mutex_;  // of peers_' flags, counts_
  std::condition_variable answered_;
  std::vector<Peer> peers_;
  std::map<uint64_t, uint64_t> counts_;
  std::atomic<bool> told_{false};
  UniqueFd stop_;
  Thread thread_;
};

}  // namespace fleet
