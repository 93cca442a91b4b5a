// Questions of local commands about the running job: the rendezvous host answers them.
#pragma once

#include <functional>
#include <vector>

#include "node/control_socket.h"
#include "node/rank_tracer.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"

namespace fleet {

// Each question gets its answer once, or none if the rendezvous is lost. One answer serves all
// questions of its kind that wait: one that wants the history may have to ask again. Not
// thread-safe: everything happens in the loop's thread.
class JobQuestions {
 public:
  using OnLive = std::function<void(const LiveReport&)>;

  // send: to the rendezvous host.
  JobQuestions(EventLoop& loop, std::function<void(wire::NodeMessage)> send);

  void ask_stacks(const wire::StackRequest& request, ControlSocket::Reply reply);
  void ask_live(const wire::LiveRequest& request, OnLive done);
  // nodes: the number in the job.
  void ask_trace(const TraceRequest& request, int nodes, ControlSocket::Reply reply);

  // The answers.
  void on_stacks(const StackReport& report);
  void on_live(const LiveReport& report);
  void on_trace(TraceAnswer answer);

 private:
  const std::function<void(wire::NodeMessage)> send_;
  std::vector<ControlSocket::Reply> stacks_;  // pending
  std::vector<OnLive> live_;                  // pending
  TraceQuestions traces_;
};

}  // namespace fleet
