// JobState between two generations: the steps after one has ended and before the next begins.
#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "rendezvous/election.h"
#include "rendezvous/job_state.h"

namespace fleet {
namespace {

// Every restart would meet the same input.
bool is_final(const Verdict& cause, const RestartPolicy& policy) {
  return cause.kind() == Verdict::RANK_FAILED && policy.final_exit != 0 &&
         cause.exit().signal() == 0 && cause.exit().code() == policy.final_exit;
}

}  // namespace

GenerationResult JobState::generation_result(const Verdict& verdict, Time now) const {
  GenerationResult end;
  end.set_generation(generation());
  end.set_nnodes(world_->nodes_size());
  end.set_world_size(world_->world_size());
  end.set_kind(verdict.kind());
  end.set_message(verdict.message());
  const auto* running = in<Running>();
  const Time began = running ? running->began : std::get<FailingOver>(phase_).generation_began;
  const auto ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - began);
  end.set_ran_for_ms(ran_for.count());
  const auto step = running ? running->stragglers.step() : std::get<FailingOver>(phase_).step;
  if (step) end.set_step(*step);
  return end;
}

bool JobState::members_have_quorum() const {
  std::set<int> here;
  for (const auto& [id, session] : sessions_) {
    if (session.member && session.node_rank >= 0) here.insert(session.node_rank);
  }
  return has_quorum(world_->nodes_size(), here);
}

// The remaining nodes are not a majority of the last generation's.
void JobState::end_without_quorum(Verdict reason, Time now) {
  *reason.mutable_message() +=
      "; the remaining nodes are not a majority of the last generation's " +
      std::to_string(world_->nodes_size()) +
      "; the job does not continue without one, because the other nodes might";
  decide(std::move(reason), now);
}

// Of a running generation, or of one whose host was lost.
void JobState::end_generation(Verdict cause, Time now) {
  const auto* running = in<Running>();
  if (spec().restarts.max_restarts == 0 || (running && running->stop)) {
    return decide(std::move(cause), now);
  }
  if (is_final(cause, spec().restarts)) {
    *cause.mutable_message() += "; not restarted, because exit code " +
                                std::to_string(cause.exit().code()) +
                                " means that the job's input is wrong";
    return decide(std::move(cause), now);
  }
  GenerationResult end = generation_result(cause, now);
  const Restarts::Next next = restarts_.on_generation_end(end);
  const std::optional<Verdict> lost = running ? running->lost : std::get<FailingOver>(phase_).lost;
  auto& stopping = phase_.emplace<Stopping>(Stopping{{cause, lost}, {}});
  if (next == Restarts::Next::kFail) {
    if (const int used = restarts_.used(); used > 0) {
      *cause.mutable_message() += "; the job had been restarted " + counted(used, "time");
    }
    return decide(std::move(cause), now);
  }
  if (next == Restarts::Next::kNoProgress) {
    cause.set_kind(Verdict::NO_PROGRESS);
    cause.set_message(
        "the job was restarted " + counted(restarts_.restarts_without_progress(), "time") +
        " without progress (--no_progress_restarts):" + history_text(restarts_.history()));
    return decide(std::move(cause), now);
  }
  if (!members_have_quorum()) return end_without_quorum(stopping.reason(), now);
  RestartCommand command;
  command.set_generation(generation());
  *command.mutable_cause() = std::move(cause);
  *command.mutable_end() = std::move(end);
  if (stopping.cause.kind() != Verdict::RESIZED) command.set_restart(restarts_.used());
  command.set_of(spec().restarts.max_restarts);
  for (const auto& [id, session] : sessions_) {
    if (!session.member) continue;
    if (session.node_rank < 0) {
      send(id, join_progress("generation " + std::to_string(generation()) +
                             " is over: " + stopping.cause.message()));
    } else {
      stopping.awaited.insert(id);
    }
  }
  broadcast(envelope(&wire::HostMessage::mutable_restart, std::move(command)), To::kRanks);
}

// No process of that generation is left there.
void JobState::on_ready(SessionId session, int generation, Time now) {
  auto* stopping = in<Stopping>();
  if (!stopping || generation != this->generation()) return;
  if (stopping->awaited.erase(session) > 0 && stopping->awaited.empty()) gather(*stopping, now);
}

void JobState::gather(Stopping& stopping, Time now) {
  const Waiting waiting{now, now + spec().restarts.elastic_timeout, now + times_.first_progress};
  GenerationOver over = std::move(stopping);
  phase_ = Gathering{waiting, std::move(over)};
  start_if_complete(now);
}

void JobState::start_if_complete(Time now) {
  if (auto* forming = in<Forming>()) {
    if (membership_.complete()) return propose(now);
    forming->due = now + spec().restarts.elastic_timeout;  // others may be on their way
  }
  const auto* gathering = in<Gathering>();
  if (!gathering) return;
  if (!members_have_quorum()) return end_without_quorum(gathering->reason(), now);
  if (membership_.enough()) propose(now);
}

void JobState::advance_gathering(Gathering& gathering, Time now) {
  if (now < gathering.due) return report_missing_nodes(gathering, now);
  Verdict verdict = gathering.reason();
  *verdict.mutable_message() +=
      "; " + counted(joined(), "node") + " left of the " + std::to_string(spec().required_nodes()) +
      " that it needs; no other joined within " + seconds_text(spec().restarts.elastic_timeout) +
      " (--elastic_timeout)";
  decide(std::move(verdict), now);
}

// Sends the world of the next generation. The first generation begins at once. A later one begins
// when all its nodes know it: from then on they follow no other host that would continue from the
// generation before.
void JobState::propose(Time now) {
  const std::shared_ptr<const World> base = world_;
  const std::shared_ptr<World> next = membership_.assign_ranks(generation() + 1, base.get());
  next->set_restarts(restarts_.used());
  next->set_allow_skew(config().allow_skew());
  world_ = next;
  membership_.begin();
  std::map<std::string, int> ranks;
  for (const wire::Node& node : world_->nodes()) ranks[node.address()] = node.node_rank();
  Agreeing agreeing;
  for (const auto& [id, info] : membership_.members()) {
    Session& session = sessions_.at(id);
    const auto rank = ranks.find(info.node().address());
    const int base_rank = std::exchange(session.node_rank, rank == ranks.end() ? -1 : rank->second);
    if (!base) warn_of_skew(id, info);
    if (session.node_rank < 0) continue;
    agreeing.awaited[id] = base_rank;
    send_assignment(id, session.node_rank, base && base_rank < 0);
  }
  if (!base) return begin_generation({}, now);
  agreeing.base.nodes = base->nodes_size();
  agreeing.cause = std::get<Gathering>(phase_).cause;
  phase_ = std::move(agreeing);
}

bool JobPhases::Base::committed() const { return nodes == 0 || has_quorum(nodes, accepted); }

// That generation's world is known there.
void JobState::on_accepted(SessionId id, int generation, Time now) {
  auto* agreeing = in<Agreeing>();
  if (!agreeing || generation != this->generation()) return;
  const auto awaited = agreeing->awaited.find(id);
  if (awaited == agreeing->awaited.end()) return;
  if (awaited->second >= 0) agreeing->base.accepted.insert(awaited->second);
  agreeing->awaited.erase(awaited);
  agree(*agreeing, now);
}

void JobState::agree(Agreeing& agreeing, Time now) {
  if (!agreeing.awaited.empty()) return;
  if (!agreeing.base.committed()) return end_without_quorum(agreeing.reason(), now);
  begin_generation(std::move(agreeing.lost), now);
}

// lost: a node that was lost since the world was sent.
void JobState::begin_generation(std::optional<Verdict> lost, Time now) {
  auto& running = phase_.emplace<Running>();
  running.began = now;
  running.stragglers.begin(now);
  running.live.begin(now);
  running.bottleneck.begin(world_->nodes_size(), now);
  running.root_cause = RootCauseAnalyzer(
      world_->nodes_size() > 1 ? times_.root_cause : single_node_times(times_.root_cause));
  for (const wire::Node& node : world_->nodes()) running.unfinished.insert(node.node_rank());
  running.lost = lost;
  if (lost) return end_generation(*std::move(lost), now);
  wire::HostMessage start;
  start.mutable_start()->set_generation(generation());
  if (generation() > 1) broadcast(std::move(start), To::kRanks);
  for (const auto& [id, session] : sessions_) {
    if (!session.member || session.node_rank >= 0) continue;
    if (generation() == 1 || is_below_full_size()) {  // it joined meanwhile
      notify_newcomer(id, now);
    } else {
      send_assignment(id, -1);
    }
  }
}

void JobState::on_node_lost_between(SessionId id, const Verdict& lost, Time now) {
  membership_.remove(id);
  broadcast(peer_event(PeerEvent::LOST, lost.node_rank(), lost.node(), lost.message()));
  if (auto* over = in<GenerationOver>()) over->lost = lost;
  if (in<Gathering>()) return start_if_complete(now);
  if (auto* stopping = in<Stopping>()) {
    stopping->awaited.erase(id);
    if (!members_have_quorum()) return end_without_quorum(stopping->reason(), now);
    if (stopping->awaited.empty()) gather(*stopping, now);
  } else if (auto* agreeing = in<Agreeing>()) {
    agreeing->awaited.erase(id);
    agree(*agreeing, now);
  }
}

// Whether the job runs with fewer nodes than it may.
bool JobState::is_below_full_size() const { return world_->nodes_size() < config().nnodes(); }

// Informs a node that joined while the job runs, or that exceeds the number of nodes to run.
void JobState::notify_newcomer(SessionId id, Time now) {
  if (!world_ || sessions_.at(id).node_rank >= 0) return;
  const std::string job = "the job runs with " + counted(world_->nodes_size(), "node") +
                          " (generation " + std::to_string(generation()) + ")";
  const std::string address = membership_.members().at(id).node().address();
  auto* running = in<Running>();
  if (running && is_below_full_size()) {
    running->scale_up_due = now + spec().restarts.elastic_timeout;
    const std::string when = seconds_text(spec().restarts.elastic_timeout) + " (--elastic_timeout)";
    send(id, join_progress(job + "; it restarts with this node in " + when));
    send_to_host(
        join_progress("node " + address + " has joined; the job restarts with it in " + when));
  } else if (!in<Gathering>()) {
    send(id, join_progress(job + "; this node waits as a spare"));
    send_to_host(
        peer_event(PeerEvent::FINISHED, -1, address, "node " + address + " waits as a spare"));
  }
  if (running) send_assignment(id, -1);
}

// New nodes have joined and the wait is over: restarts the job with them.
void JobState::scale_up(Running& running, Time now) {
  // A failure or a hang that awaits its verdict is not forgotten for the sake of newcomers.
  if (running.root_cause.any() || running.killed || (running.stacks && running.stacks->hang))
    return;
  running.scale_up_due.reset();
  // Ranks have returned: the job is about to end.
  for (const wire::Node& node : world_->nodes()) {
    if (trainers(node) > 0 && !running.unfinished.contains(node.node_rank())) return;
  }
  std::vector<std::string> newcomers;
  for (const auto& [id, info] : membership_.members()) {
    if (sessions_.at(id).node_rank < 0) newcomers.push_back(info.node().address());
  }
  if (newcomers.empty() || running.stop) return;  // they have left again
  std::sort(newcomers.begin(), newcomers.end(), address_less);
  Verdict cause = node_verdict(Verdict::RESIZED, -1);
  const int more =
      std::min(static_cast<int>(newcomers.size()), config().nnodes() - world_->nodes_size());
  cause.set_message("the job continues with " + counted(world_->nodes_size() + more, "node") +
                    " after these joined: " + list_some(newcomers));
  end_generation(std::move(cause), now);
}

namespace {

// The rank of the node with this address; -1 if it is not in the world.
int rank_of(const World& world, const std::string& address) {
  for (const wire::Node& node : world.nodes()) {
    if (node.address() == address) return node.node_rank();
  }
  return -1;
}

// Does not refuse differences that the lost host has accepted.
JobSpec with_accepted_skew(JobSpec spec, const World& base) {
  if (base.allow_skew()) spec.config.set_allow_skew(true);
  return spec;
}

}  // namespace

JobState::JobState(const JobSpec& spec, JobTimes times, std::string display_address, Time now,
                   const FailoverState& from)
    : JobState(with_accepted_skew(spec, *from.base), times, std::move(display_address), now) {
  world_ = from.base;
  membership_.begin();
  restarts_ = Restarts(spec.restarts, world_->restarts(), from.history);
  FailingOver failing{};
  failing.began = now;
  failing.due = now + std::max(spec.restarts.elastic_timeout, 2 * times.max_silence);
  failing.next_progress = now + times.first_progress;
  failing.lost = node_verdict(Verdict::NODE_LOST, from.lost);
  failing.lost.set_message(from.how);
  failing.generation_began = now - from.ran_for;
  failing.step = from.step;
  failing.before = from.before;
  failing.base.nodes = failing.before ? failing.before->nodes_size() : 0;
  phase_ = std::move(failing);
}

// Until this host knows that it may continue, nodes with another world should look for another
// host. Afterwards such a node is a returning node: its ranks are stopped, and it has no influence
// on the world from which this job continues.
std::optional<Error> JobState::check_survivor(const wire::Join& info) const {
  if (info.last().generation() == 0) return std::nullopt;  // a new node
  const bool failing = in<FailingOver>() != nullptr;
  if (failing ? info.last() == world_->id() : !in<Forming>()) return std::nullopt;
  return Error(ErrorCode::kStale,
               "it was part of generation " + std::to_string(info.last().generation()) +
                   " of another host; this host is at generation " + std::to_string(generation()),
               "node " + info.node().address(), "start it again to take part");
}

void JobState::on_survivor_joined(FailingOver& failing, SessionId id, Time now) {
  const wire::Join& info = membership_.members().at(id);
  if (info.last() == world_->id()) {
    sessions_.at(id).node_rank = rank_of(*world_, info.node().address());
    if (info.committed() == info.last()) failing.base.nodes = 0;
    if (failing.before && info.committed() == failing.before->id()) {
      const int rank = rank_of(*failing.before, info.node().address());
      if (rank >= 0) failing.base.accepted.insert(rank);
    }
  }
  complete_failover_if_ready(failing, now);
}

// Either all other nodes are here, or a majority is and the rest had time to notice the loss.
void JobState::complete_failover_if_ready(FailingOver& failing, Time now) {
  int here = 0;
  for (const auto& [id, session] : sessions_) here += session.member && session.node_rank >= 0;
  const bool all = here + 1 == world_->nodes_size();
  const bool waited = now >= failing.began + 2 * times_.max_silence;
  const bool enough = members_have_quorum() && failing.base.committed();
  if (enough && (all || waited)) return end_generation(failing.lost, now);
  if (!enough && (all || now >= failing.due)) return end_without_quorum(failing.lost, now);
  report_missing_nodes(failing, now);
}

}  // namespace fleet
