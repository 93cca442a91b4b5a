#include "rendezvous/job_state.h"

#include <algorithm>
#include <utility>

#include "base/terminal_text.h"

namespace fleet {
namespace {

// Does not refuse differences that the lost host has accepted.
JobSpec with_accepted_skew(JobSpec spec, const World& base) {
  if (base.allow_skew()) spec.config.set_allow_skew(true);
  return spec;
}

// Also answered while no rank runs: the asker may wait for it.
void on_live_request(Job& job, SessionId session, bool with_history) {
  const auto* running = job.in<phases::Running>();
  LiveReport report = running ? running->live.report(job.now) : LiveReport();
  const auto bottleneck = running ? running->bottleneck.recent() : std::nullopt;
  if (bottleneck) *report.mutable_bottleneck() = *bottleneck;
  report.set_job_id(job.config().job_id());
  report.set_generation(job.generation());
  report.set_nnodes(job.world ? job.world->nodes_size() : 0);
  report.set_world_size(job.world ? job.world->world_size() : 0);
  if (with_history) *report.mutable_history() = job.history.snapshot(job.now);
  job.nodes.send(session, envelope(&wire::HostMessage::mutable_live, std::move(report)));
}

// The requesting launcher waits for answers, requests one piece after another, and has its own time
// limit: nothing is kept here.
void on_trace_request(Job& job, SessionId session, TraceRequest request) {
  request.set_requester(session);
  const wire::HostMessage message = envelope(&wire::HostMessage::mutable_trace_request, request);
  if (!request.has_node_rank()) return job.nodes.broadcast(message, JobNodes::To::kRanks);
  for (const auto& [id, other] : job.nodes.sessions()) {
    if (other.member && other.node_rank == request.node_rank()) return job.nodes.send(id, message);
  }
}

void on_trace_answer(Job& job, int node_rank, TraceAnswer answer) {
  const SessionId to = answer.requester();
  answer.set_node_rank(node_rank);
  if (!job.nodes.is_member(to)) return;
  job.nodes.send(to, envelope(&wire::HostMessage::mutable_trace_answer, std::move(answer)));
}

}  // namespace

JobState::JobState(const JobSpec& spec, const JobTimes& times, std::string display_address,
                   Time now, const FailoverState& from)
    : JobState(with_accepted_skew(spec, *from.base), times, std::move(display_address), now) {
  job_.world = from.base;
  job_.nodes.membership().begin();
  job_.restarts = Restarts(spec.restarts, job_.world->restarts(), from.history);
  phases::FailingOver failing{};
  failing.began = now;
  failing.due = now + std::max(spec.restarts.elastic_timeout, 2 * times.max_silence);
  failing.next_progress = now + times.first_progress;
  failing.lost = job_.node_verdict(Verdict::NODE_LOST, from.lost);
  failing.lost.set_message(from.how);
  failing.generation_began = now - from.ran_for;
  failing.step = from.step;
  failing.before = from.before;
  failing.base.nodes = failing.before ? failing.before->nodes_size() : 0;
  job_.phase = std::move(failing);
}

std::vector<Outgoing> JobState::step(JobEvent event, Time now) {
  const auto interval = job_.nodes.poll_interval();
  const auto skipped = clock_.skipped();
  clock_.set_longest(interval);
  job_.now = clock_.at(now);
  job_.steady_now = now;
  was_away_ |= clock_.skipped() - skipped > interval;
  std::visit([&](auto& one) { on(one); }, event);
  return job_.nodes.take_outgoing();
}

JobState::Time JobState::next_deadline() const {
  const auto* running = job_.in<phases::Running>();
  const Time next = job_.nodes.next_poll(running ? running->root_cause.due() : Time::max());
  const auto* forming = job_.in<phases::Forming>();
  if (!forming) return clock_.steady(next);
  return clock_.steady(
      std::min({next, forming->began + job_.nodes.times().timeout, forming->next_progress}));
}

const Verdict* JobState::verdict() const {
  const auto* ended = job_.in<phases::Ended>();
  return ended && ended->verdict ? &*ended->verdict : nullptr;
}

void JobState::on(const SessionOpened& opened) { job_.nodes.open(opened.session, job_.moment()); }

void JobState::on(const SessionLost& lost) {
  on_node_gone(lost.session, "its fleetrun vanished", job_.steady_now);
}

// Ignore messages of sessions that have not joined.
void JobState::on(FromNode& from) {
  const SessionId id = from.session;
  const wire::NodeMessage& message = from.message;
  if (message.has_join()) return on_join(id, std::move(*from.message.mutable_join()));
  if (message.has_leave()) {
    return on_node_gone(id, "its fleetrun left before its ranks had ended", job_.steady_now);
  }
  const JobNodes::Session* session = job_.nodes.touch_member(id, job_.moment());
  if (!session) return;
  const int node_rank = session->node_rank;
  if (message.has_stop()) return on_stop_request(id, node_rank, message.stop());
  if (message.has_failure()) return on_node_failed(id, message.failure().how());
  if (message.has_live_request()) {
    return on_live_request(job_, id, message.live_request().history());
  }
  if (message.has_trace_request()) return on_trace_request(job_, id, message.trace_request());
  if (message.has_trace_answer()) return on_trace_answer(job_, node_rank, message.trace_answer());
  if (auto* running = job_.in<phases::Running>()) {
    return running->on_message(job_, id, node_rank, message);
  }
  auto* stopping = job_.in<phases::Stopping>();
  if (stopping && message.has_ready() && message.ready().generation() == generation()) {
    return stopping->on_ready(job_, id);
  }
  auto* agreeing = job_.in<phases::Agreeing>();
  if (agreeing && message.has_accept() && message.accept().generation() == generation()) {
    agreeing->on_accepted(job_, id);
  }
}

void JobState::on(const TimePassed&) {
  // The process was suspended or starved. It reads all received messages before it judges,
  // but not every time: it may be starved for long.
  deferred_ = std::exchange(was_away_, false) && !deferred_;
  if (deferred_) return job_.nodes.defer_poll(job_.now);
  if (job_.in<phases::Running>()) job_.nodes.end_startup(job_.moment());
  const Time taken_in = taken_in_ ? std::min(job_.now, clock_.past(*taken_in_)) : job_.now;
  for (const auto& [since, id] : job_.nodes.find_silent(job_.now, taken_in)) {
    const JobNodes::Session* session = job_.nodes.find(id);
    if (!session) continue;
    const std::string how = "was silent for " + seconds_text(job_.nodes.intervals().max_silence);
    std::optional<Verdict> lost;  // in terms of the world that it belongs to
    if (session->node_rank >= 0) lost = job_.lost_verdict(id, "its fleetrun " + how);
    on_node_gone(id, "its fleetrun " + how, since);
    // If it wakes up again, it learns the outcome, or joins again.
    if (lost && (verdict() || !job_.restarts_at_all())) {
      send_farewell(id, *lost);
    } else {
      job_.nodes.refuse(
          id, Error(ErrorCode::kPeerLost, "the host gave up on this node, because it " + how));
    }
  }
  if (auto* running = job_.in<phases::Running>()) return running->on_time(job_);
  if (auto* gathering = job_.in<phases::Gathering>()) return gathering->on_time(job_);
  if (auto* failing = job_.in<phases::FailingOver>()) return failing->on_time(job_);
  if (auto* forming = job_.in<phases::Forming>()) forming->on_time(job_);
}

void JobState::on(const TakenIn& taken) {
  taken_in_ = taken.until;
  on(TimePassed{});
}

void JobState::on(const HostEnds&) {
  // The others continue.
  if (job_.restarts_at_all() && !job_.in<phases::Forming>()) return;
  Verdict verdict = job_.node_verdict(Verdict::NODE_LOST, 0);
  if (verdict.node().empty()) verdict.set_node(job_.display_address);
  verdict.set_message("node 0 (" + verdict.node() + ") has ended the rendezvous");
  job_.decide(std::move(verdict));
}

void JobState::on_join(SessionId session, wire::Join info) {
  if (!job_.nodes.find(session) || is_member(session)) return;
  lose_earlier_session(info);
  const std::string address = info.node().address();
  const auto job = [this] { return "job '" + shown_name(config().job_id()) + "'"; };
  const bool open = job_.in<phases::Forming>() || job_.restarts_at_all();
  const auto* ended = job_.in<phases::Ended>();
  if (info.job().job_id() == config().job_id() && !open && !ended) {
    return job_.nodes.refuse(
        session, Error(ErrorCode::kStale,
                       job() + " already runs with all its " + std::to_string(config().nnodes()) +
                           " nodes (" + job_.nodes.membership().present() + ")",
                       "node " + address, "another job needs another --job_id and --rdzv_port"));
  }
  if (info.job().job_id() == config().job_id() && ended) {
    return job_.nodes.refuse(session,
                             Error(ErrorCode::kStale, job() + " has ended: " + ended->outcome,
                                   "node " + address, "start it again on every node"));
  }
  if (const auto stale = check_survivor(info)) return job_.nodes.refuse(session, *stale);
  std::optional<SessionId> replaced;
  const auto error = job_.nodes.membership().add(session, std::move(info), &replaced);
  if (replaced) {
    job_.nodes.refuse(*replaced,
                      Error(ErrorCode::kStale, "has connected again", "node " + address));
  }
  if (error) {
    job_.nodes.refuse(session, *error);
    return job_.nodes.send_to_host(join_progress("refused: " + std::string(error->what())));
  }
  job_.nodes.admit(session, job_.moment());
  if (auto* failing = job_.in<phases::FailingOver>()) return failing->on_joined(job_, session);
  job_.notify_newcomer(session);
  job_.start_if_complete();
}

// A node of the world that joins again has lost its connection, and with it messages. Its place in
// the running generation is lost: the new session is a newcomer.
void JobState::lose_earlier_session(const wire::Join& info) {
  const auto earlier = job_.nodes.membership().earlier_session(info);
  if (!earlier || job_.in<phases::Forming>() || job_.in<phases::FailingOver>() ||
      job_.in<phases::Ended>()) {
    return;
  }
  const JobNodes::Session* session = job_.nodes.find(*earlier);
  if (!session) return;                // it was lost already
  if (session->node_rank < 0) return;  // a spare: it is only replaced
  const std::string how = "its fleetrun lost its connection and has connected again";
  on_node_gone(*earlier, how, job_.steady_now);
  job_.nodes.refuse(
      *earlier, Error(ErrorCode::kStale, "has connected again", "node " + info.node().address()));
}

// Until this host knows that it may continue, nodes with another world should look for another
// host. Afterwards such a node is a returning node: its ranks are stopped, and it has no influence
// on the world from which this job continues.
std::optional<Error> JobState::check_survivor(const wire::Join& info) const {
  if (info.last().generation() == 0) return std::nullopt;  // a new node
  const bool failing = job_.in<phases::FailingOver>() != nullptr;
  if (failing ? info.last() == job_.world->id() : !job_.in<phases::Forming>()) return std::nullopt;
  return Error(ErrorCode::kStale,
               "it was part of generation " + std::to_string(info.last().generation()) +
                   " of another host; this host is at generation " + std::to_string(generation()),
               "node " + info.node().address(), "start it again to take part");
}

void JobState::on_stop_request(SessionId session, int node_rank, const wire::StopRequest& request) {
  if (job_.in<phases::Ended>()) return;
  const int signal = request.signal();
  if (auto* forming = job_.in<phases::Forming>()) return forming->on_stop(job_, session, signal);
  if (node_rank < 0) {  // a spare: it ends alone
    const Verdict verdict =
        job_.stopped_verdict(-1, signal, " " + job_.nodes.address(session) + ", a spare");
    job_.nodes.membership().remove(session);
    job_.nodes.close(session);
    return job_.nodes.send(session, envelope(&wire::HostMessage::mutable_verdict, verdict), true);
  }
  if (auto* running = job_.in<phases::Running>()) return running->on_stop(job_, node_rank, request);
  // Its ranks are stopped or being stopped.
  job_.decide(job_.stopped_verdict(node_rank, signal, " during a restart"));
}

// The node cannot continue but still receives the outcome.
void JobState::on_node_failed(SessionId id, const std::string& how) {
  if (job_.in<phases::Ended>()) return;
  const Verdict lost = job_.lost_verdict(id, how);
  const wire::HostMessage news =
      peer_event(PeerEvent::LOST, job_.nodes.find(id)->node_rank, lost.node(), lost.message());
  // Stopping already: it finishes like the other nodes.
  const auto* running = job_.in<phases::Running>();
  if (running && running->stop) return job_.nodes.broadcast(news);
  // The other nodes are about to lose their host and should know the reason.
  if (job_.restarts_at_all() && id == job_.nodes.membership().host()) job_.nodes.broadcast(news);
  on_node_gone(id, how, job_.steady_now);
  send_farewell(id, lost);
}

void JobState::on_node_gone(SessionId id, const std::string& how, Time since) {
  JobNodes& nodes = job_.nodes;
  const JobNodes::Session* session = nodes.find(id);
  if (!session) return;
  if (!session->member || job_.in<phases::Ended>()) return nodes.close(id);
  const int node_rank = session->node_rank;
  const Verdict lost = job_.lost_verdict(id, how);
  nodes.close(id);
  if (auto* forming = job_.in<phases::Forming>()) return forming->on_left(job_, id);
  if (node_rank < 0) {  // a spare
    const std::string address = nodes.address(id);
    nodes.membership().remove(id);
    nodes.send_to_host(
        peer_event(PeerEvent::LOST, -1, address, "node " + address + ", a spare, has left again"));
    return job_.start_if_complete();
  }
  // Its fleetrun is about to end the rendezvous: the other nodes notice and look for the next host.
  if (job_.restarts_at_all() && id == nodes.membership().host()) {
    return nodes.membership().remove(id);
  }
  if (auto* running = job_.in<phases::Running>()) {
    return running->on_node_lost(job_, id, lost, since);
  }
  nodes.membership().remove(id);
  nodes.broadcast(peer_event(PeerEvent::LOST, node_rank, lost.node(), lost.message()));
  if (auto* over = job_.in<phases::GenerationOver>()) over->lost = lost;
  if (job_.in<phases::Gathering>()) return job_.start_if_complete();
  if (auto* stopping = job_.in<phases::Stopping>()) return stopping->on_left(job_, id);
  if (auto* agreeing = job_.in<phases::Agreeing>()) agreeing->stop_awaiting(job_, id);
}

// Tells a node that is no longer part of the job how the job has ended or, if the job continues
// without the node, why.
void JobState::send_farewell(SessionId session, const Verdict& lost) {
  const Verdict& told = verdict() ? *verdict() : lost;
  job_.nodes.send(session, envelope(&wire::HostMessage::mutable_verdict, told), true);
}

}  // namespace fleet
