#include "node/rank_tracer.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace fleet {
namespace {

constexpr size_t kMaxEvents = 2'000;

}  // namespace

void RankTracer::begin_generation(int generation, int64_t now_ns) {
  generation_ = generation;
  note(LauncherEvent::GENERATION, -1, -1, generation, now_ns);
}

void RankTracer::note(LauncherEvent::Kind kind, int local_rank, int rank, int number,
                      int64_t at_ns) {
  LauncherEvent event;
  event.set_kind(kind);
  event.set_at_ns(at_ns);
  event.set_number(number);
  event.set_generation(generation_);
  if (local_rank >= 0) {
    event.set_local_rank(local_rank);
    event.set_rank(rank);
  }
  if (events_.size() == kMaxEvents) {
    events_.pop_front();
    if (before_ > 0) --before_;
  }
  events_.push_back(std::move(event));
}

void RankTracer::on_rank_ended(pid_t pid) {
  for (Traced& traced : ranks_) {
    if (traced.rank.pid() == pid) traced.rank.set_ended(true);
  }
}

void RankTracer::begin(int64_t steps, const std::vector<Target>& targets) {
  ranks_.clear();
  before_ = events_.size();
  for (const Target& target : targets) {
    Traced& traced = ranks_.emplace_back();
    traced.rank.set_local_rank(target.local_rank);
    traced.rank.set_rank(target.rank);
    traced.rank.set_pid(target.pid);
    traced.rank.set_generation(generation_);
    if (!target.of_engine || !target.progress) continue;
    try {
      traced.memory = std::make_unique<TraceReader>(steps);
      target.progress->request_trace(traced.memory->file());
    } catch (const Error& error) {  // descriptors or memory may have run out
      traced.memory.reset();
      spdlog::warn("no trace of local rank {}: {}", target.local_rank, error.what());
    }
  }
}

void RankTracer::update(Traced* traced) const {
  if (!traced->memory) return;
  const TraceStatus status = traced->memory->status();
  TracedRank& rank = traced->rank;
  rank.set_state(status.pid == 0                      ? TracedRank::REQUESTED
                 : status.state == TraceMemory::kDone ? TracedRank::DONE
                                                      : TracedRank::RECORDING);
  rank.set_steps_done(status.steps_done);
  rank.set_text_bytes(status.end.text);
  rank.set_records(status.end.records);
  rank.set_dropped(status.dropped);
  if (status.time_namespace != 0 && status.time_namespace != own_time_namespace()) {
    rank.set_refused("its clock is in another time namespace than its launcher's");
  }
}

TraceAnswer RankTracer::answer(const TraceRequest& request, const std::vector<Target>& targets) {
  TraceAnswer answer;
  answer.set_ticket(request.ticket());
  answer.set_requester(request.requester());
  if (request.kind() == TraceRequest::READ) {
    const auto index = static_cast<size_t>(request.index());
    wire::TracePiece& piece = *answer.mutable_piece();
    if (index >= ranks_.size() || !ranks_[index].memory) return answer;
    TracePart part =
        ranks_[index].memory->read({request.text_at(), request.records_at()}, kPieceBytes);
    piece.set_text(std::move(part.text));
    piece.set_records(part.records.data(), part.records.size() * sizeof(TraceRecord));
    return answer;
  }
  if (request.kind() == TraceRequest::BEGIN) begin(request.steps(), targets);
  if (request.kind() == TraceRequest::END) ranks_.clear();
  wire::NodeTrace& node = *answer.mutable_node();
  for (Traced& traced : ranks_) {
    update(&traced);
    *node.add_ranks() = traced.rank;
  }
  // The asker has those before the trace from the answer to BEGIN.
  const size_t first = request.kind() == TraceRequest::BEGIN ? 0 : before_;
  for (size_t i = first; i < events_.size(); ++i) *node.add_events() = events_[i];
  realtime_.sample_clocks();
  for (const auto& offset : realtime_.offsets()) *node.add_realtime() = offset;
  return answer;
}

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
