// JobState: messages of nodes, and those to them; nodes that join and leave.
#include "rendezvous/job_state.h"

#include <algorithm>
#include <utility>

#include "base/terminal_text.h"

namespace fleet {
namespace {

// Up to this many nodes, all are informed of each one that leaves.
constexpr int kFew = 64;
// Equal signals to launchers of several nodes within this time count as one.
constexpr std::chrono::seconds kOneSignal{1};
// Bytes of the message of one generation in a history that is sent: that of a hang has stacks.
constexpr size_t kMaxHistoryText = 4 << 10;

}  // namespace

JobState::JobState(const JobSpec& spec, JobTimes times, std::string display_address, Time now)
    : times_(times),
      display_address_(std::move(display_address)),
      membership_(spec),
      restarts_(spec.restarts),
      suspension_(now),
      started_up_(times.startup_max_silence.count() == 0),
      phase_(Forming{{now, now + spec.restarts.elastic_timeout, now + times.first_progress}}) {}

std::vector<Outgoing> JobState::step(const JobEvent& event, Time now) {
  std::visit([&](const auto& one) { on(one, now); }, event);
  return std::exchange(outgoing_, {});
}

void JobState::send(SessionId to, wire::HostMessage message, bool last) {
  outgoing_.push_back({to, std::make_shared<const wire::HostMessage>(std::move(message)), last});
}

void JobState::send_assignment(SessionId to, int node_rank, bool with_history) {
  wire::HostMessage message;
  message.mutable_assignment()->set_node_rank(node_rank);
  if (with_history) {
    for (const GenerationResult& end : restarts_.history()) {
      GenerationResult& sent = *message.mutable_assignment()->add_history() = end;
      sent.mutable_message()->resize(std::min(sent.message().size(), kMaxHistoryText));
    }
  }
  send(to, std::move(message));
  outgoing_.back().world = world_;
}

void JobState::broadcast(wire::HostMessage message, To to) {
  const auto shared = std::make_shared<const wire::HostMessage>(std::move(message));
  for (const auto& [id, session] : sessions_) {
    const bool wanted = to == To::kAll || session.node_rank >= 0;
    if (session.member && wanted) outgoing_.push_back({id, shared});
  }
}

void JobState::send_to_host(wire::HostMessage message) {
  const auto host = membership_.host();
  if (host && sessions_.contains(*host)) send(*host, std::move(message));
}

void JobState::on(const SessionOpened& opened, Time now) {
  const FailureDetector detector(current_intervals(), now);
  sessions_.insert_or_assign(opened.session, Session{detector});
  silence_due_ = std::min(silence_due_, detector.deadline());
}

void JobState::on(const SessionLost& lost, Time now) {
  on_node_gone(lost.session, "its fleetrun vanished", now, now);
}

// Ignore messages of sessions that have not joined.
void JobState::on(const FromNode& from, Time now) {
  const SessionId id = from.session;
  const wire::NodeMessage& message = from.message;
  if (message.has_join()) return on_join(id, message.join(), now);
  if (message.has_leave()) {
    return on_node_gone(id, "its fleetrun left before its ranks had ended", now, now);
  }
  const Session* session = touch_member(id, now);
  if (!session) return;
  // News of ranks: only while they run, and not from spares.
  const int node_rank = session->node_rank;
  auto* running = node_rank >= 0 ? in<Running>() : nullptr;
  switch (message.kind_case()) {
    case wire::NodeMessage::kReady:
      return on_ready(id, message.ready().generation(), now);
    case wire::NodeMessage::kAccept:
      return on_accepted(id, message.accept().generation(), now);
    case wire::NodeMessage::kStop:
      return on_stop_request(id, message.stop(), now);
    case wire::NodeMessage::kFailure:
      return on_node_failed(id, message.failure().how(), now);
    case wire::NodeMessage::kStackRequest:
      return on_stack_request(id, now);
    case wire::NodeMessage::kLiveRequest:
      return on_live_request(id, now);
    case wire::NodeMessage::kTraceRequest:
      return on_trace_request(id, message.trace_request());
    case wire::NodeMessage::kTraceAnswer:
      return on_trace_answer(node_rank, message.trace_answer());
    case wire::NodeMessage::kExit:
      if (running) on_rank_exited(*running, node_rank, message.exit(), now);
      return;
    case wire::NodeMessage::kStall:
      if (running) on_rank_stalled(*running, node_rank, message.stall(), now);
      return;
    case wire::NodeMessage::kStacks:
      if (running) on_stacks(*running, node_rank, message.stacks(), now);
      return;
    case wire::NodeMessage::kSteps:
      if (running) on_steps(*running, node_rank, message.steps(), now);
      return;
    case wire::NodeMessage::kSignal:
      if (running) on_signal_request(node_rank, message.signal().signal(), now);
      return;
    case wire::NodeMessage::kFinished:
      if (running) on_finished(*running, node_rank, now);
      return;
    case wire::NodeMessage::kHeartbeat:
    case wire::NodeMessage::kJoin:
    case wire::NodeMessage::kLeave:
    case wire::NodeMessage::KIND_NOT_SET:
      return;
  }
}

void JobState::on(const TimePassed&, Time now) {
  const auto suspended = suspension_.poll(now, suspension_limit(current_intervals()));
  if (auto* waiting = in<Waiting>()) {
    waiting->began += suspended;
    waiting->due += suspended;
  }
  end_startup(now);
  expire_silent_sessions(now);
  if (auto* running = in<Running>(); running && now >= root_cause_due(*running)) {
    decide_root_cause(*running, now);
  }
  if (auto* running = in<Running>(); running && running->stacks && now >= running->stacks->due) {
    end_stack_collection(*running, now);
  }
  if (auto* running = in<Running>();
      running && running->scale_up_due && now >= *running->scale_up_due) {
    scale_up(*running, now);
  }
  if (auto* gathering = in<Gathering>()) advance_gathering(*gathering, now);
  if (auto* failing = in<FailingOver>()) complete_failover_if_ready(*failing, now);
  if (auto* forming = in<Forming>()) advance_forming(*forming, now);
}

void JobState::on(const HostEnds&, Time now) {
  if (spec().restarts.max_restarts > 0 && !in<Forming>()) return;  // the others continue
  Verdict verdict = node_verdict(Verdict::NODE_LOST, 0);
  if (verdict.node().empty()) verdict.set_node(display_address_);
  verdict.set_message("node 0 (" + verdict.node() + ") has ended the rendezvous");
  decide(std::move(verdict), now);
}

void JobState::on_join(SessionId session, wire::Join info, Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.member) return;
  lose_earlier_session(info, now);
  const std::string address = info.node().address(),
                    job = "job '" + shown_name(config().job_id()) + "'";
  const bool open = in<Forming>() || spec().restarts.max_restarts > 0;
  const auto* ended = in<Ended>();
  if (info.job().job_id() == config().job_id() && !open && !ended) {
    return refuse(session,
                  Error(ErrorCode::kStale,
                        job + " already runs with all its " + std::to_string(config().nnodes()) +
                            " nodes (" + membership_.present() + ")",
                        "node " + address, "another job needs another --job_id and --rdzv_port"));
  }
  if (info.job().job_id() == config().job_id() && ended) {
    return refuse(session, Error(ErrorCode::kStale, job + " has ended: " + ended->outcome,
                                 "node " + address, "start it again on every node"));
  }
  if (const auto stale = check_survivor(info)) return refuse(session, *stale);
  std::optional<SessionId> replaced;
  const auto error = membership_.add(session, std::move(info), &replaced);
  if (replaced) {
    refuse(*replaced, Error(ErrorCode::kStale, "has connected again", "node " + address));
  }
  if (error) {
    refuse(session, *error);
    return send_to_host(join_progress("refused: " + std::string(error->what())));
  }
  found->second.member = true;
  found->second.failure_detector.received(now);
  send(session, welcome());
  if (auto* failing = in<FailingOver>()) return on_survivor_joined(*failing, session, now);
  notify_newcomer(session, now);
  start_if_complete(now);
}

// A node of the world that joins again has lost its connection, and with it messages. Its place in
// the running generation is lost: the new session is a newcomer.
void JobState::lose_earlier_session(const wire::Join& info, Time now) {
  const auto earlier = membership_.earlier_session(info);
  if (!earlier || in<Forming>() || in<FailingOver>() || in<Ended>()) return;
  const auto found = sessions_.find(*earlier);
  if (found == sessions_.end()) return;     // it was lost already
  if (found->second.node_rank < 0) return;  // a spare: it is only replaced
  const std::string how = "its fleetrun lost its connection and has connected again";
  on_node_gone(*earlier, how, now, now);
  refuse(*earlier,
         Error(ErrorCode::kStale, "has connected again", "node " + info.node().address()));
}

// Reports differences that --allow_skew accepted. Called late, because node 0's launcher may have
// joined after the others.
void JobState::warn_of_skew(SessionId session, const wire::Join& info) {
  const std::vector<std::string> skew = membership_.skew(info);
  if (skew.empty()) return;
  const wire::HostMessage line = join_progress(
      "node " + info.node().address() + " differs, as --allow_skew allows: " + list_some(skew));
  send(session, line);
  send_to_host(line);
}

const Verdict* JobState::verdict() const {
  const auto* ended = in<Ended>();
  return ended && ended->verdict ? &*ended->verdict : nullptr;
}

void JobState::on_stop_request(SessionId session, const wire::StopRequest& request, Time now) {
  if (in<Ended>()) return;
  const int signal = request.signal();
  if (in<Forming>()) {
    const wire::Join& info = membership_.members().at(session);
    Verdict verdict =
        stopped_verdict(-1, signal, " " + info.node().address() + " before all nodes had joined");
    if (info.has_node_rank()) verdict.set_node_rank(info.node_rank());
    verdict.set_node(info.node().address());
    verdict.set_hostname(info.node().hostname());
    return decide(std::move(verdict), now);
  }
  const int rank = sessions_.at(session).node_rank;
  if (rank < 0) {  // a spare: it ends alone
    const std::string address = membership_.members().at(session).node().address();
    membership_.remove(session);
    sessions_.erase(session);
    const Verdict verdict = stopped_verdict(-1, signal, " " + address + ", a spare");
    return send(session, envelope(&wire::HostMessage::mutable_verdict, verdict), true);
  }
  auto* running = in<Running>();
  if (!running) {  // its ranks are stopped or being stopped
    return decide(stopped_verdict(rank, signal, " during a restart"), now);
  }
  StopCommand command;
  command.set_signal(signal);
  command.set_node_rank(rank);
  command.set_node(world_->nodes(rank).address());
  command.set_kill(request.kill());
  if (request.has_grace_ms()) command.set_grace_ms(request.grace_ms());
  if (!running->stop)
    running->stop = command;  // the first one decides the verdict; later ones may be harsher
  if (request.has_at_error_ns())
    running->root_cause.on_stop(request.at_ns(), request.at_error_ns());
  broadcast(envelope(&wire::HostMessage::mutable_stop, std::move(command)), To::kRanks);
}

// A signal to the launchers of all nodes (as a batch system sends it) is one signal.
void JobState::on_signal_request(int node_rank, int signal, Time now) {
  UserSignal& last = user_signals_[signal];
  const bool recent = !last.from.empty() && now - last.at < kOneSignal;
  if (recent && last.from.insert(node_rank).second) return;
  last = {now, {node_rank}};
  wire::HostMessage message;
  message.mutable_signal()->set_signal(signal);
  message.mutable_signal()->set_node_rank(node_rank);
  broadcast(std::move(message), To::kRanks);
}

void JobState::on_steps(Running& running, int node_rank, StepReport report, Time now) {
  if (running.stop) return;
  for (RankSteps& rank : *report.mutable_ranks()) rank.set_node_rank(node_rank);
  for (RankUsage& rank : *report.mutable_usage()) rank.set_node_rank(node_rank);
  running.live.update(report, now);
  if (auto line = running.bottleneck.update(report, now)) {
    send_to_host(peer_event(PeerEvent::BOTTLENECK, -1, {}, *std::move(line)));
  }
  for (std::string& line : running.stragglers.update(report, now)) {
    broadcast(peer_event(PeerEvent::STRAGGLER, node_rank, {}, std::move(line)));
  }
}

// Also answered while no rank runs: the asker may wait for it.
void JobState::on_live_request(SessionId session, Time now) {
  const auto* running = in<Running>();
  LiveReport report = running ? running->live.report(now) : LiveReport();
  const auto bottleneck = running ? running->bottleneck.recent() : std::nullopt;
  if (bottleneck) *report.mutable_bottleneck() = *bottleneck;
  report.set_job_id(config().job_id());
  report.set_generation(generation());
  report.set_nnodes(world_ ? world_->nodes_size() : 0);
  report.set_world_size(world_ ? world_->world_size() : 0);
  send(session, envelope(&wire::HostMessage::mutable_live, std::move(report)));
}

// The launcher that asks waits for answers, asks for one piece after the other, and gives up by
// itself: nothing is kept here.
void JobState::on_trace_request(SessionId session, TraceRequest request) {
  request.set_requester(session);
  const wire::HostMessage message = envelope(&wire::HostMessage::mutable_trace_request, request);
  if (!request.has_node_rank()) return broadcast(message, To::kRanks);
  for (const auto& [id, other] : sessions_) {
    if (other.member && other.node_rank == request.node_rank()) return send(id, message);
  }
}

void JobState::on_trace_answer(int node_rank, TraceAnswer answer) {
  const SessionId to = answer.requester();
  answer.set_node_rank(node_rank);
  if (!sessions_.contains(to) || !sessions_.at(to).member) return;
  send(to, envelope(&wire::HostMessage::mutable_trace_answer, std::move(answer)));
}

// The node cannot continue but still receives the outcome.
void JobState::on_node_failed(SessionId id, const std::string& how, Time now) {
  if (in<Ended>()) return;
  Verdict lost = lost_verdict(id, how);
  const wire::HostMessage news =
      peer_event(PeerEvent::LOST, sessions_.at(id).node_rank, lost.node(), lost.message());
  // Stopping already: it finishes like the other nodes.
  if (const auto* running = in<Running>(); running && running->stop) return broadcast(news);
  // The other nodes are about to lose their host and should know the reason.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) broadcast(news);
  on_node_gone(id, how, now, now);
  send_farewell(id, lost);
}

Verdict JobState::lost_verdict(SessionId id, const std::string& how) const {
  const int rank = sessions_.at(id).node_rank;
  Verdict verdict = node_verdict(Verdict::NODE_LOST, rank);
  if (rank < 0) verdict.set_node(membership_.members().at(id).node().address());
  const std::string label = node_label(verdict.node(), verdict.hostname());
  verdict.set_message("node " + (rank < 0 ? label : std::to_string(rank) + " (" + label + ")") +
                      " was lost: " + how);
  return verdict;
}

// Tells a node that is no longer part of the job how the job has ended or, if the job continues
// without the node, why.
void JobState::send_farewell(SessionId session, const Verdict& lost) {
  send(session, envelope(&wire::HostMessage::mutable_verdict, verdict() ? *verdict() : lost), true);
}

void JobState::on_node_gone(SessionId id, const std::string& how, Time since, Time now) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const Session session = found->second;
  if (!session.member || in<Ended>()) return void(sessions_.erase(found));
  const Verdict verdict = lost_verdict(id, how);
  sessions_.erase(found);
  const std::string address = membership_.members().at(id).node().address();
  if (in<Forming>()) {
    membership_.remove(id);
    if (config().nnodes() > kFew) return;  // the next line about missing nodes suffices
    return broadcast(
        join_progress("node " + address + " has left again; waiting for " + membership_.missing()));
  }
  if (session.node_rank < 0) {  // a spare
    membership_.remove(id);
    send_to_host(
        peer_event(PeerEvent::LOST, -1, address, "node " + address + ", a spare, has left again"));
    return start_if_complete(now);
  }
  // Its fleetrun is about to end the rendezvous: the other nodes notice and look for the next host.
  if (spec().restarts.max_restarts > 0 && id == membership_.host()) return membership_.remove(id);
  auto* running = in<Running>();
  if (!running) return on_node_lost_between(id, verdict, now);
  if (spec().restarts.max_restarts > 0) membership_.remove(id);
  // While its parameter servers still serve other nodes, a node has not finished.
  const bool serves = world_->nodes(session.node_rank).servers() > 0;
  if (!serves && !running->unfinished.contains(session.node_rank)) return;
  if (running->stop) {  // stopping already: the stop stays the verdict
    broadcast(peer_event(PeerEvent::LOST, session.node_rank, verdict.node(), verdict.message()));
    return on_node_finished(*running, session.node_rank, now);
  }
  running->lost = verdict;
  running->root_cause.on_node_lost(session.node_rank, since);
  decide_root_cause(*running, now);
}

void JobState::report_missing_nodes(Waiting& waiting, Time now) {
  if (now < waiting.next_progress) return;
  waiting.next_progress = now + times_.progress_every;
  broadcast(join_progress("waiting for " + membership_.missing() + " of " +
                          std::to_string(config().nnodes()) +
                          " nodes; here: " + membership_.present()));
}

void JobState::advance_forming(Forming& forming, Time now) {
  const bool enough = membership_.enough() && spec().required_nodes() < config().nnodes();
  if (enough && now >= std::min(forming.due, forming.began + times_.timeout)) return propose(now);
  if (now >= forming.began + times_.timeout) return time_out();
  report_missing_nodes(forming, now);
}

void JobState::time_out() {
  const Error error(
      ErrorCode::kTimeout,
      "only " + std::to_string(joined()) + " of " + std::to_string(config().nnodes()) +
          " nodes joined within " + seconds_text(times_.timeout) + ": " + membership_.present() +
          "; missing: " + membership_.missing(),
      "rendezvous of job '" + shown_name(config().job_id()) + "' at " + display_address_,
      "start fleetrun on the missing ones too, check that they can reach " + display_address_ +
          " (firewall, --rdzv_port), or raise --rdzv_timeout");
  phase_ = Ended{error.failure(), std::nullopt};
  std::vector<SessionId> members;
  for (const auto& [id, info] : membership_.members()) members.push_back(id);
  for (const SessionId id : members) refuse(id, error);
}

}  // namespace fleet
