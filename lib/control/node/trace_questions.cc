#include <chrono>
#include <utility>

#include "node/rank_tracer.h"

namespace fleet {

constexpr std::chrono::seconds kPatience{3};  // for the answers

void TraceQuestions::ask(TraceRequest request, int nodes, ControlSocket::Reply reply) {
  const uint64_t ticket = ++last_;
  Question& question = questions_[ticket];
  question.reply = std::move(reply);
  for (int node = 0; node < nodes; ++node) question.awaited.insert(node);
  if (request.has_node_rank()) question.awaited = {request.node_rank()};
  question.limit = std::make_unique<LoopTimer>(loop_);
  question.limit->after(kPatience, [this, ticket] { finish(ticket); });
  request.set_ticket(ticket);
  send_(std::move(request));
}

void TraceQuestions::on_answer(TraceAnswer answer) {
  const auto found = questions_.find(answer.ticket());
  if (found == questions_.end()) return;  // too late
  Question& question = found->second;
  if (question.awaited.erase(answer.node_rank()) == 0) return;
  *question.report.add_answers() = std::move(answer);
  if (question.awaited.empty()) finish(found->first);
}

void TraceQuestions::finish(uint64_t ticket) {
  Question question = std::move(questions_.extract(ticket).mapped());
  for (const int node : question.awaited) question.report.add_silent(node);
  question.reply(envelope(&wire::ControlReply::mutable_trace, std::move(question.report)));
}

}  // namespace fleet
