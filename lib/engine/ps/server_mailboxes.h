// The messages that servers have sent to a trainer.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/connection.h"
#include "ps/trainer_counters.h"

namespace fleet::ps {

// The subject of a message. Results of commands are a topic of their own.
enum class Topic { kBlocks, kRows };

// The messages that servers have sent. Thread-safe.
class ServerMailboxes {
 public:
  // names: "server 0 at 10.0.0.1:6070", by server. counters: null, or must outlive this object.
  explicit ServerMailboxes(std::vector<std::string> names, TrainerCounters* counters = nullptr);

  // For the connection to this server; lives as long as this object.
  ConnectionHandler& handler(int server);
  const std::string& name(int server) const { return names_[static_cast<size_t>(server)]; }
  // The server's next message of this type; drops earlier ones of type kAccepted on the same topic.
  // Threads may wait for messages of different topics. Throws the reason if any server has sent
  // kFailure, kPeerLost naming a server whose connection has ended, kTimeout naming this server,
  // kInternal for a message of another type on the topic. Time in which this process was suspended
  // does not count.
  Message wait(int server, MessageType type, std::chrono::milliseconds timeout,
               Topic topic = Topic::kBlocks);

 private:
  class Handler;
  std::optional<Message> take(int server, MessageType type, Topic topic) FLEET_REQUIRES(mutex_);
  void throw_if_lost() FLEET_REQUIRES(mutex_);

  struct Box {
    std::deque<Message> messages = {};
    std::optional<std::string> end = {};  // why the connection has ended
  };
  const std::vector<std::string> names_;
  TrainerCounters* const counters_;
  std::vector<std::unique_ptr<ConnectionHandler>> handlers_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Box> boxes_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet::ps
