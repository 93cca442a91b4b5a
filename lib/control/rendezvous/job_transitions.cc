// Job: how one phase follows another.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "rendezvous/election.h"
#include "rendezvous/job_phases.h"

namespace fleet {

using phases::Agreeing;
using phases::Ended;
using phases::FailingOver;
using phases::Forming;
using phases::Gathering;
using phases::GenerationOver;
using phases::Running;
using phases::Stopping;
using phases::Waiting;

namespace {

// Bytes of the message of one generation in a history that is sent: that of a hang has stacks.
constexpr size_t kMaxHistoryText = 4 << 10;

// Every restart would meet the same input.
bool is_final(const Verdict& cause, const RestartPolicy& policy) {
  return cause.kind() == Verdict::RANK_FAILED && policy.final_exit != 0 &&
         cause.exit().signal() == 0 && cause.exit().code() == policy.final_exit;
}

}  // namespace

Job::Job(const JobSpec& spec, const JobTimes& times, std::string address, Time begin)
    : display_address(std::move(address)),
      nodes(spec, times, begin),
      restarts(spec.restarts),
      phase(Forming{{begin, begin + spec.restarts.elastic_timeout, begin + times.first_progress}}),
      now(begin),
      steady_now(begin) {}

bool Job::have_quorum() const { return has_quorum(world->nodes_size(), nodes.ranks_here()); }

Verdict Job::node_verdict(Verdict::Kind kind, int node_rank) const {
  Verdict verdict;
  verdict.set_kind(kind);
  verdict.set_generation(generation());
  if (node_rank >= 0) verdict.set_node_rank(node_rank);
  if (world && node_rank >= 0) {
    verdict.set_node(world->nodes(node_rank).address());
    verdict.set_hostname(world->nodes(node_rank).hostname());
  }
  return verdict;
}

Verdict Job::lost_verdict(SessionId session, const std::string& how) {
  const int rank = nodes.find(session)->node_rank;
  Verdict verdict = node_verdict(Verdict::NODE_LOST, rank);
  if (rank < 0) verdict.set_node(nodes.address(session));
  const std::string label = node_label(verdict.node(), verdict.hostname());
  verdict.set_message("node " + (rank < 0 ? label : std::to_string(rank) + " (" + label + ")") +
                      " was lost: " + how);
  return verdict;
}

Verdict Job::stopped_verdict(int node_rank, int signal, const std::string& more) const {
  Verdict verdict = node_verdict(Verdict::STOPPED, node_rank);
  verdict.set_signal(signal);
  std::string& message = *verdict.mutable_message();
  message = "stopped by " + signal_name(signal) + " to the launcher of node";
  if (node_rank >= 0) message += " " + std::to_string(node_rank) + " (" + verdict.node() + ")";
  message += more;
  return verdict;
}

GenerationResult Job::result_of(const Verdict& verdict) const {
  GenerationResult end;
  end.set_generation(generation());
  end.set_nnodes(world->nodes_size());
  end.set_world_size(world->world_size());
  end.set_kind(verdict.kind());
  end.set_message(verdict.message());
  const auto* running = in<Running>();
  const Time began = running ? running->began : std::get<FailingOver>(phase).generation_began;
  const auto ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - began);
  end.set_ran_for_ms(ran_for.count());
  const auto step = running ? running->stragglers.step() : std::get<FailingOver>(phase).step;
  if (step) end.set_step(*step);
  return end;
}

void Job::decide(Verdict verdict) {
  if (in<Ended>()) return;
  const auto* running = in<Running>();
  const auto bottleneck = running ? running->bottleneck.overall() : std::nullopt;
  if (bottleneck) *verdict.mutable_bottleneck() = *bottleneck;
  replacements.add_to(&verdict, now);
  if (!restarts.history().empty()) {
    if (running) restarts.record(result_of(verdict));
    verdict.set_restarts(restarts.used());
    verdict.mutable_history()->Assign(restarts.history().begin(), restarts.history().end());
  }
  phase = Ended{verdict.message(), verdict};
  nodes.broadcast(envelope(&wire::HostMessage::mutable_verdict, std::move(verdict)));
}

void Job::refuse_all(const Error& error) {
  phase = Ended{error.failure(), std::nullopt};
  std::vector<SessionId> members;
  for (const auto& [id, info] : nodes.membership().members()) members.push_back(id);
  for (const SessionId id : members) nodes.refuse(id, error);
}

void Job::step_down(const Verdict& reason) {
  refuse_all(Error(ErrorCode::kPeerLost,
                   reason.message() + "; only " + std::to_string(nodes.ranks_here().size()) +
                       " of the job's " + counted(world->nodes_size(), "node") +
                       " are left here, and the others may continue without them"));
}

void Job::end_generation(Verdict cause) {
  const auto* running = in<Running>();
  if (!restarts_at_all() || (running && running->stop)) return decide(std::move(cause));
  if (is_final(cause, spec().restarts)) {
    *cause.mutable_message() += "; not restarted, because exit code " +
                                std::to_string(cause.exit().code()) +
                                " means that the job's input is wrong";
    return decide(std::move(cause));
  }
  GenerationResult end = result_of(cause);
  const Restarts::Next next = restarts.on_generation_end(end);
  const std::optional<Verdict> lost = running ? running->lost : std::get<FailingOver>(phase).lost;
  auto& stopping = phase.emplace<Stopping>(Stopping{{cause, lost}, {}});
  if (next == Restarts::Next::kFail) {
    if (const int used = restarts.used(); used > 0) {
      *cause.mutable_message() += "; the job had been restarted " + counted(used, "time");
    }
    return decide(std::move(cause));
  }
  if (next == Restarts::Next::kNoProgress) {
    cause.set_kind(Verdict::NO_PROGRESS);
    cause.set_message(
        "the job was restarted " + counted(restarts.restarts_without_progress(), "time") +
        " without progress (--no_progress_restarts):" + history_text(restarts.history()));
    return decide(std::move(cause));
  }
  if (!have_quorum()) return step_down(stopping.reason());
  RestartCommand command;
  command.set_generation(generation());
  *command.mutable_cause() = std::move(cause);
  *command.mutable_end() = std::move(end);
  if (stopping.cause.kind() != Verdict::RESIZED) command.set_restart(restarts.counted());
  command.set_of(spec().restarts.max_restarts);
  for (const auto& [id, session] : nodes.sessions()) {
    if (!session.member) continue;
    if (session.node_rank < 0) {
      nodes.send(id, join_progress("generation " + std::to_string(generation()) +
                                   " is over: " + stopping.cause.message()));
    } else {
      stopping.awaited.insert(id);
    }
  }
  nodes.broadcast(envelope(&wire::HostMessage::mutable_restart, std::move(command)),
                  JobNodes::To::kRanks);
}

void Job::gather() {
  const Waiting waiting{now, now + spec().restarts.elastic_timeout,
                        now + nodes.times().first_progress};
  GenerationOver over = std::move(std::get<Stopping>(phase));
  phase = Gathering{waiting, std::move(over)};
  start_if_complete();
}

void Job::start_if_complete() {
  if (auto* forming = in<Forming>()) {
    if (nodes.membership().complete()) return propose();
    forming->due = now + spec().restarts.elastic_timeout;  // others may be on their way
  }
  const auto* gathering = in<Gathering>();
  if (!gathering) return;
  if (!have_quorum()) return step_down(gathering->reason());
  if (nodes.membership().enough()) propose();
}

// Sends the world of the next generation. The first generation begins at once. A later one begins
// when all its nodes know it: from then on they follow no other host that would continue from the
// previous generation.
void Job::propose() {
  const std::shared_ptr<const World> base = world;
  const std::shared_ptr<World> next = nodes.membership().assign_ranks(generation() + 1, base.get());
  next->set_restarts(restarts.used());
  next->set_allow_skew(config().allow_skew());
  world = next;
  nodes.membership().begin();
  std::unordered_map<std::string_view, int> ranks;
  ranks.reserve(static_cast<size_t>(world->nodes_size()));
  for (const wire::Node& node : world->nodes()) ranks[node.address()] = node.node_rank();
  Agreeing agreeing;
  for (const auto& [id, info] : nodes.membership().members()) {
    JobNodes::Session& session = *nodes.find(id);
    const auto rank = ranks.find(info.node().address());
    const int base_rank = std::exchange(session.node_rank, rank == ranks.end() ? -1 : rank->second);
    if (!base) nodes.warn_of_skew(id);
    if (session.node_rank < 0) continue;
    agreeing.awaited[id] = base_rank;
    send_assignment(id, session.node_rank, base && base_rank < 0);
  }
  if (!base) return begin_generation({});
  agreeing.base.nodes = base->nodes_size();
  agreeing.cause = std::get<Gathering>(phase).cause;
  phase = std::move(agreeing);
}

void Job::send_assignment(SessionId to, int node_rank, bool with_history) {
  wire::HostMessage message;
  message.mutable_assignment()->set_node_rank(node_rank);
  if (with_history) {
    for (const GenerationResult& end : restarts.history()) {
      GenerationResult& sent = *message.mutable_assignment()->add_history() = end;
      sent.mutable_message()->resize(std::min(sent.message().size(), kMaxHistoryText));
    }
  }
  nodes.send_world(to, std::move(message), world);
}

void Job::begin_generation(std::optional<Verdict> lost) {
  phase.emplace<Running>(*this).lost = lost;
  if (lost) return end_generation(*std::move(lost));
  wire::HostMessage start;
  start.mutable_start()->set_generation(generation());
  if (generation() > 1) nodes.broadcast(std::move(start), JobNodes::To::kRanks);
  for (const auto& [id, session] : nodes.sessions()) {
    if (!session.member || session.node_rank >= 0) continue;
    if (generation() == 1 || is_below_full_size()) {  // it joined in between
      notify_newcomer(id);
    } else {
      send_assignment(id, -1);
    }
  }
}

void Job::notify_newcomer(SessionId session) {
  if (!world || nodes.find(session)->node_rank >= 0) return;
  const std::string job = "the job runs with " + counted(world->nodes_size(), "node") +
                          " (generation " + std::to_string(generation()) + ")";
  const std::string& address = nodes.address(session);
  auto* running = in<Running>();
  if (running && is_below_full_size()) {
    running->scale_up_due = now + spec().restarts.elastic_timeout;
    const std::string when = seconds_text(spec().restarts.elastic_timeout) + " (--elastic_timeout)";
    nodes.send(session, join_progress(job + "; it restarts with this node in " + when));
    nodes.send_to_host(
        join_progress("node " + address + " has joined; the job restarts with it in " + when));
  } else if (!in<Gathering>()) {
    nodes.send(session, join_progress(job + "; this node waits as a spare"));
    nodes.send_to_host(
        peer_event(PeerEvent::FINISHED, -1, address, "node " + address + " waits as a spare"));
  }
  if (running) send_assignment(session, -1);
}

}  // namespace fleet
