// Questions of `fleetrun trace` to the nodes of the job, which come back as one answer each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "node/control_socket.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class TraceQuestions {
 public:
  // send: to the rendezvous host. patience: for the answers.
  TraceQuestions(EventLoop& loop, std::function<void(TraceRequest)> send,
                 std::chrono::milliseconds patience = std::chrono::milliseconds(3'000))
      : loop_(loop), send_(std::move(send)), patience_(patience) {}
  // nodes: of the job. Replies once, with a TraceReport.
  void ask(TraceRequest request, int nodes, ControlSocket::Reply reply);
  void on_answer(TraceAnswer answer);

 private:
  struct Question {
    std::set<int> awaited;  // nodes
    TraceReport report;
    ControlSocket::Reply reply;
    std::unique_ptr<LoopTimer> limit;
  };
  void finish(uint64_t ticket);

  EventLoop& loop_;
  const std::function<void(TraceRequest)> send_;
  const std::chrono::milliseconds patience_;
  uint64_t last_ = 0;
  std::map<uint64_t, Question> questions_;  // by ticket
};

}  // namespace fleet
