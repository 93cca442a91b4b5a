// RendezvousClient after the loss of its host: carries out what HostSearch decides.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "rendezvous/client.h"
#include "rendezvous/election.h"
#include "rendezvous/job_lookup.h"

namespace fleet {
namespace {

// A busy machine takes a second or two for a handshake.
constexpr std::chrono::milliseconds kAskTimeout{3'000};

}  // namespace

void RendezvousClient::host_lost(const std::string& how) {
  const wire::Node& host = job_.world()->nodes(host_);
  lose_host(reported_loss_.empty()
                ? "node " + std::to_string(host_) + " (" +
                      node_label(host.address(), host.hostname()) +
                      "), which hosts the rendezvous, was lost: its fleetrun " + how
                : std::exchange(reported_loss_, {}));
}

// With restarts, the other nodes continue without the host, and this node looks for them. Without
// restarts, or if the job was being stopped, the job ends.
void RendezvousClient::lose_host(std::string message) {
  const World& world = *job_.world();
  lost_ = host_;
  loss_message_ = std::move(message);
  probe_pending_ = false;
  last_reason_.clear();
  job_.on_host_lost(&join_);
  if (!options_.restarts || world.nodes_size() < 2 || stop_commanded_) return give_up_failover();
  const auto now = Clock::now();
  const auto max_silence = monitor_.times().max_silence;
  HostSearchSettings settings;
  for (const wire::Node& node : world.nodes()) settings.can_host.push_back(node.rdzv_port() > 0);
  settings.self = job_.node_rank();
  settings.may_host = job_.may_host();
  settings.turn = notice_time(max_silence);
  settings.give_up = std::max(options_.elastic_timeout, 2 * max_silence);
  search_.emplace(std::move(settings), now);
  next_progress_ = now + options_.progress_every;
  drop_stream();
  const std::string line = loss_message_ + "; looking for the job's next host";
  if (job_.is_spare()) {
    emit(join_progress(line));
  } else {
    emit(HostLost{world.id().generation(), line});
  }
  leave_own_host();
  ticker_.due_by(now);
}

RendezvousClient::Clock::time_point RendezvousClient::search_for_host(Clock::time_point now) {
  carry_out(search_->on_time(now), now);
  if (phase_ == Phase::kEnded) return Clock::time_point::max();
  if (phase_ == Phase::kConnecting && now >= next_progress_) {
    next_progress_ = now + options_.progress_every;
    emit(join_progress("still looking for a node that hosts the job" +
                       (last_reason_.empty() ? "" : " (" + last_reason_ + ")")));
  }
  if (now >= next_attempt_ && !stream_) connect();
  for (const int node : search_->take_questions(now)) ask(node);
  return std::min(search_->due(now), next_attempt_);
}

void RendezvousClient::carry_out(const HostSearch::Step& step, Clock::time_point now) {
  using Action = HostSearch::Step::Action;
  switch (step.action) {
    case Action::kNone:
      return;
    case Action::kLeave:
      last_reason_ = "no answer";
      return drop_stream();
    case Action::kGiveUp:
      return give_up_failover();
    case Action::kHost:
      host_ = step.node;
      join_.set_hosts_rendezvous(true);
      return emit(TakeOver{job_.world()->nodes(step.node).rdzv_port(),
                           job_.failover_state(lost_, loss_message_, now)});
    case Action::kJoin:
      drop_stream();
      leave_own_host();
      host_ = step.node;
      set_host(job_.host_address(step.node));
      return connect_by(now);
  }
}

void RendezvousClient::ask(int node) {
  ask_rendezvous(job_.host_address(node), options_.security, kAskTimeout,
                 [weak = weak_from_this(), node](const auto& reply) {
                   if (const auto self = weak.lock()) self->on_answer(node, reply);
                 });
}

void RendezvousClient::on_answer(int node, const std::optional<wire::DescribeReply>& reply) {
  {
    const MutexLock lock(mutex_);
    if (!search_ || left_ || phase_ == Phase::kEnded) return;
    const auto now = Clock::now();
    HostAnswer answer = HostAnswer::kNone;
    if (runs_job(reply, join_.job().job_id()) && reply->run() == job_.world()->run()) {
      const bool same = reply->waits_for() == job_.world()->id();
      answer = !reply->has_waits_for() ? HostAnswer::kContinues
               : same                  ? HostAnswer::kWaits
                                       : HostAnswer::kNone;
    }
    carry_out(search_->on_answer(node, answer, now), now);
    ticker_.due_by(search_->due(now));
  }
  deliver();
}

// The host that this node had found is gone or has refused it, or this node's own has ended.
void RendezvousClient::found_host_gone(Clock::time_point now) {
  drop_stream();
  leave_own_host();
  search_->on_host_gone(now);
  ticker_.due_by(now);
}

void RendezvousClient::leave_own_host() {
  if (join_.hosts_rendezvous()) emit(StepDown{});
  join_.set_hosts_rendezvous(false);
}

void RendezvousClient::give_up_failover() {
  const wire::Node& host = job_.world()->nodes(lost_);
  wire::HostMessage message;
  Verdict& verdict = *message.mutable_verdict();
  verdict.set_kind(Verdict::NODE_LOST);
  verdict.set_generation(job_.world()->id().generation());
  verdict.set_node_rank(lost_);
  verdict.set_node(host.address());
  verdict.set_hostname(host.hostname());
  verdict.set_message(loss_message_);
  if (search_) {
    *verdict.mutable_message() +=
        "; this node found no other node that hosts the job" +
        (last_reason_.empty() ? "" : " (" + last_reason_ + ")") + " within " +
        seconds_text(std::max(options_.elastic_timeout, 2 * monitor_.times().max_silence)) +
        "; check the network and the output of the other nodes; if they have ended, start the job "
        "again; if they were only away for longer, raise --elastic_timeout";
  }
  end(std::move(message));
}

void RendezvousClient::follow(const std::string& address, std::shared_ptr<JobHost> host) {
  const MutexLock lock(mutex_);
  if (!search_ || !search_->hosts() || left_) return;
  set_host(address, std::move(host));
  connect_by(Clock::now());
}

}  // namespace fleet
