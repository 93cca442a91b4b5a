#include "node/job_questions.h"

#include <utility>

namespace fleet {

JobQuestions::JobQuestions(EventLoop& loop, std::function<void(wire::NodeMessage)> send)
    : send_(std::move(send)), traces_(loop, [this](TraceRequest request) {
        send_(envelope(&wire::NodeMessage::mutable_trace_request, std::move(request)));
      }) {}

void JobQuestions::ask_stacks(const wire::StackRequest& request, ControlSocket::Reply reply) {
  stacks_.push_back(std::move(reply));
  send_(envelope(&wire::NodeMessage::mutable_stack_request, request));
}

void JobQuestions::ask_live(const wire::LiveRequest& request, OnLive done) {
  live_.push_back(std::move(done));
  send_(envelope(&wire::NodeMessage::mutable_live_request, request));
}

void JobQuestions::ask_trace(const TraceRequest& request, int nodes, ControlSocket::Reply reply) {
  traces_.ask(request, nodes, std::move(reply));
}

void JobQuestions::on_stacks(const StackReport& report) {
  const auto answer = envelope(&wire::ControlReply::mutable_stacks, report);
  for (const ControlSocket::Reply& reply : std::exchange(stacks_, {})) reply(answer);
}

void JobQuestions::on_live(const LiveReport& report) {
  for (const OnLive& done : std::exchange(live_, {})) done(report);
}

void JobQuestions::on_trace(TraceAnswer answer) { traces_.on_answer(std::move(answer)); }

}  // namespace fleet
