#include "node/trace_questions.h"

#include <utility>

namespace fleet {

void TraceQuestions::ask(TraceRequest request, int nodes, ControlSocket::Reply reply) {
  const uint64_t ticket = ++last_;
  Question& question = questions_[ticket];
  question.reply = std::move(reply);
  for (int node = 0; node < nodes; ++node) question.awaited.insert(node);
  if (request.has_node_rank()) question.awaited = {request.node_rank()};
  question.limit = std::make_unique<LoopTimer>(loop_);
  question.limit->after(patience_, [this, ticket] { finish(ticket); });
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
  wire::ControlReply reply;
  *reply.mutable_trace() = std::move(question.report);
  question.reply(reply);
}

}  // namespace fleet
