// JobState: which failure, loss or request ends a job or its generation.
#include <signal.h>

#include <utility>

#include "rendezvous/control_messages.h"
#include "rendezvous/job_state.h"

namespace fleet {
namespace {

// Equal signals to launchers of several nodes within this time count as one.
constexpr std::chrono::seconds kOneSignal{1};

}  // namespace

Verdict JobState::node_verdict(Verdict::Kind kind, int node_rank) const {
  Verdict verdict;
  verdict.set_kind(kind);
  verdict.set_generation(generation_);
  if (node_rank >= 0) verdict.set_node_rank(node_rank);
  if (world_ && node_rank >= 0) {
    verdict.set_node(world_->nodes.at(node_rank).address);
    verdict.set_hostname(world_->nodes.at(node_rank).hostname);
  }
  return verdict;
}

void JobState::decide(Verdict verdict, Time now) {
  if (verdict_) return;
  if (!restarts_.history().empty()) {
    if (phase_ == Phase::kRunning) restarts_.record(generation_result(verdict, now));
    verdict.set_restarts(restarts_.used());
    verdict.mutable_history()->Assign(restarts_.history().begin(), restarts_.history().end());
  }
  phase_ = Phase::kEnded;
  outcome_ = verdict.message();
  verdict_ = std::move(verdict);
  broadcast(*verdict_);
}

void JobState::on_rank_exited(SessionId session, RankExit exit, Time now) {
  Session* from = touch_member(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning || !failed(exit)) return;
  exit.set_node_rank(from->node_rank);
  // Exits after a stop command are consequences of it.
  if (stop_) return;
  if (exit.killed_by_us()) {
    if (!killed_) killed_ = std::move(exit);
    return;
  }
  root_cause_.on_rank_failed(std::move(exit), now);
}

// An overdue node may be the cause of the reported failures: wait until it answers or is given up.
JobState::Time JobState::root_cause_due() const {
  Time due = root_cause_.due();
  if (due == Time::max() || root_cause_.any_lost()) return due;
  const Time overdue = due - 3 * times_.heartbeat_interval;
  for (const SessionId id : by_silence_) {
    const Session& session = sessions_.at(id);
    if (session.last_received >= overdue) break;
    if (session.member) due = std::max(due, session.last_received + times_.max_silence);
  }
  return due;
}

void JobState::decide_root_cause(Time now) {
  RootCauseAnalyzer::RootCause cause = root_cause_.decide();
  cause.exit ? decide_failed(std::move(*cause.exit), now)
             : decide_lost(cause.node_rank, cause.how, now);
}

void JobState::decide_lost(int node_rank, const std::string& how, Time now) {
  Verdict verdict = node_verdict(Verdict::NODE_LOST, node_rank);
  verdict.set_message("node " + std::to_string(node_rank) + " (" +
                      node_label(verdict.node(), verdict.hostname()) + ") was lost: " + how);
  end_generation(std::move(verdict), now);
}

void JobState::decide_failed(RankExit exit, Time now) {
  Verdict verdict = node_verdict(Verdict::RANK_FAILED, exit.node_rank());
  std::string& message = *verdict.mutable_message();
  message = describe(exit, node_label(verdict.node(), verdict.hostname()));
  if (!exit.cause().empty()) message += ": " + exit.cause();
  if (!exit.log_path().empty()) message += "; its log: " + exit.log_path();
  *verdict.mutable_exit() = std::move(exit);
  end_generation(std::move(verdict), now);
}

void JobState::on_finished(SessionId session, Time now) {
  Session* from = touch_member(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning || from->finished) return;
  from->finished = true;
  const int rank = from->node_rank;
  const std::string& address = world_->nodes.at(rank).address;
  const std::string line = "node " + std::to_string(rank) + " (" + address + ") has finished";
  const bool well = !root_cause_.any() && !stop_ && !killed_;  // otherwise the verdict reports it
  if (well && spec().nnodes > 1) {
    send_to_host(peer_event(PeerEvent::FINISHED, rank, address, line));
  }
  on_node_finished(now);
}

// One node fewer has running ranks; the last one ends the job.
void JobState::on_node_finished(Time now) {
  if (--unfinished_ > 0) return;
  if (root_cause_.any()) return decide_root_cause(now);
  Verdict verdict = node_verdict(Verdict::SUCCESS, -1);
  verdict.set_message("all " + std::to_string(world_->world_size) + " ranks have succeeded");
  if (stop_ || killed_) {
    const int by_itself = killed_ && killed_->signal() != 0 ? killed_->signal() : SIGTERM;
    verdict = stopped_verdict(stop_ ? stop_->node_rank() : killed_->node_rank(),
                              stop_ ? stop_->signal() : by_itself, "");
  }
  decide(std::move(verdict), now);
}

// `more`: follows the node, or replaces it if it has no rank.
Verdict JobState::stopped_verdict(int rank, int signal, const std::string& more) const {
  Verdict verdict = node_verdict(Verdict::STOPPED, rank);
  verdict.set_signal(signal);
  std::string& message = *verdict.mutable_message();
  message = "stopped by " + signal_name(signal) + " to the launcher of node";
  if (rank >= 0) message += " " + std::to_string(rank) + " (" + verdict.node() + ")";
  message += more;
  return verdict;
}

void JobState::on_stop_request(SessionId session, const wire::StopRequest& request, Time now) {
  const int signal = request.signal();
  const Session* from = touch_member(session, now);
  if (!from || phase_ == Phase::kEnded) return;
  if (phase_ == Phase::kForming) {
    const NodeInfo& info = membership_.members().at(session);
    Verdict verdict =
        stopped_verdict(-1, signal, " " + info.address + " before all nodes had joined");
    if (info.node_rank >= 0) verdict.set_node_rank(info.node_rank);
    verdict.set_node(info.address);
    verdict.set_hostname(info.hostname);
    return decide(std::move(verdict), now);
  }
  const int rank = from->node_rank;
  if (rank < 0) {  // a spare: it ends alone
    const std::string address = membership_.members().at(session).address;
    membership_.remove(session);
    forget(session);
    return send(session, RendezvousEvent(stopped_verdict(-1, signal, " " + address + ", a spare")),
                true);
  }
  if (phase_ != Phase::kRunning) {  // its ranks are stopped or being stopped
    return decide(stopped_verdict(rank, signal, " during a restart"), now);
  }
  StopCommand command;
  command.set_signal(signal);
  command.set_node_rank(rank);
  command.set_node(world_->nodes.at(rank).address);
  command.set_kill(request.kill());
  if (request.has_grace_ms()) command.set_grace_ms(request.grace_ms());
  if (!stop_) stop_ = command;  // the first one decides the verdict; later ones may be harsher
  if (request.has_at_error_ns()) root_cause_.on_stop(request.at_ns(), request.at_error_ns());
  broadcast_to_ranks(command);
}

// A signal to the launchers of all nodes (as a batch system sends it) is one signal.
void JobState::on_signal_request(SessionId session, int signal, Time now) {
  const Session* from = touch_member(session, now);
  if (!from || from->node_rank < 0 || phase_ != Phase::kRunning) return;
  UserSignal& last = user_signals_[signal];
  const bool recent = !last.from.empty() && now - last.at < kOneSignal;
  if (recent && last.from.insert(from->node_rank).second) return;
  last = {now, {from->node_rank}};
  SignalCommand command;
  command.set_signal(signal);
  command.set_node_rank(from->node_rank);
  broadcast_to_ranks(command);
}

}  // namespace fleet
