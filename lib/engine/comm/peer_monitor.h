// Peer monitor: a TCP connection between every two ranks of a group. Ranks use it to detect each
// other's death, report failures, and ask which rank is behind. It carries no data.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "base/running_clock.h"
#include "base/thread.h"
#include "comm/factory.h"
#include "comm/group.h"

namespace fleet {

class PeerMonitor {
 public:
  // Collective: returns when every rank is connected. kTimeout names the ranks that did not
  // connect. `failed` is called from a peer monitor thread with each failure detected or received.
  PeerMonitor(const CommOptions& options, const Group& group,
              std::function<void(const Error&)> failed);
  ~PeerMonitor();  // says goodbye, so that the others do not count this rank as dead
  PeerMonitor(const PeerMonitor&) = delete;

  // Sends `error` to all reachable ranks; only the first failure is sent. A failure that was
  // detected or received is forwarded automatically, so that a rank that leaves after a failure has
  // reported it.
  void report(const Error& error);
  // Counts an operation of a group (`group_id`: any number that its ranks agree on) and returns its
  // number.
  uint64_t begin_operation(uint64_t group_id);
  // Returns the members of `ranks` that delay operation `count` of the group: those that do not
  // answer in time (stopped processes), or, if all answer, those that are furthest behind. Must not
  // be called from the peer monitor's own thread.
  std::vector<int> ranks_behind(const std::vector<int>& ranks, uint64_t group_id, uint64_t count,
                                std::chrono::milliseconds patience);
  bool has_left(int rank) const;

 private:
  enum Kind : uint32_t { kHello, kGoodbye, kError, kProgressRequest, kProgressReply };
  struct Message {
    Kind kind;
    uint32_t rank;  // sender
    uint64_t group_id, count;
    SerializedError error;
  };
  // Once connected, `fd` does not change, and only the monitor's thread accesses the rest.
  struct Connection {
    UniqueFd fd;
    bool gone = false;
    size_t filled = 0;  // bytes of `incoming`
    Message incoming;
  };
  struct Peer {
    bool left = false;
    bool answered = false;
    uint64_t count = 0;  // from the last answer
  };

  std::string key(int rank) const {
    return options_.group + "/peer_monitor/" + std::to_string(rank);
  }
  UniqueFd listen();
  void connect_to(int rank, const std::string& address);
  void accept_others(int listener, RunningDeadline* deadline);
  void run();
  void receive(int rank);
  void handle(int rank, const Message& message);
  void lost(int rank);
  void fail(const Error& error);
  void send(int rank, Message message);

  const CommOptions options_;
  const Group group_;
  const std::function<void(const Error&)> failed_;
  std::vector<Connection> connections_;
  Mutex asking_;  // held by ranks_behind(): one question at a time
  mutable Mutex mutex_;
  CondVar answered_;
  uint64_t asked_group_ FLEET_GUARDED_BY(mutex_) = 0;  // in the last question
  std::vector<Peer> peers_ FLEET_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> counts_ FLEET_GUARDED_BY(mutex_);
  std::atomic<bool> reported_{false};
  UniqueFd stop_;
  Thread thread_;
};

}  // namespace fleet
