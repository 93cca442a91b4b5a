// RendezvousClient after the loss of its host: it finds the next host or becomes it.
#include "rendezvous/client.h"
#include "transport/grpc_setup.h"

namespace fleet {
namespace {

// Other nodes may notice the loss this much later.
constexpr std::chrono::milliseconds kFailoverMargin{1'000};

}  // namespace

// With restarts, the other nodes continue without the host. Without restarts, or if the job was
// being stopped, the job ends.
void RendezvousClient::host_lost(const std::string& how) {
  lost_ = host_;
  const wire::Node& host = world_->nodes(lost_);
  loss_message_ = "node " + std::to_string(lost_) + " (" +
                  node_label(host.address(), host.hostname()) +
                  "), which hosts the rendezvous, was lost: its fleetrun " + how;
  if (!reported_loss_.empty()) loss_message_ = std::exchange(reported_loss_, {});
  const auto now = Clock::now();
  std::vector<bool> can_host;
  for (const wire::Node& node : world_->nodes()) can_host.push_back(node.rdzv_port() > 0);
  // A node that has received a world but not its Start cannot know whether that world counts. It
  // can find out if it knows the preceding world, from which another part of the job might continue
  // instead.
  const bool knows = committed_.get() && (is_committed() || committed_->id() == world_->base());
  pending_assignment_.reset();
  probe_pending_ = false;
  join_.clear_last();
  join_.clear_committed();
  if (node_rank_ >= 0) {  // a spare has no vote
    *join_.mutable_last() = world_->id();
    if (committed_.get()) *join_.mutable_committed() = committed_->id();
  }
  join_.set_hosts_rendezvous(false);
  failover_.emplace(std::move(can_host), lost_, knows ? node_rank_ : -1,
                    failure_detector_.times().max_silence + kFailoverMargin, now);
  const bool ends =
      !options_.restarts || world_->nodes_size() < 2 || node_rank_ == 0 || stop_commanded_;
  if (!ends) {
    const std::string line = loss_message_ + "; looking for the next host";
    if (node_rank_ < 0) {
      emit(join_progress(line));
    } else {
      emit(HostLost{world_->id().generation(), line});
    }
  }
  phase_ = Phase::kConnecting;
  last_reason_.clear();
  if (ends) return give_up_failover();
  do_failover_step(now);
}

bool RendezvousClient::is_committed() const { return committed_ == world_; }

void RendezvousClient::give_up_failover() {
  const wire::Node& host = world_->nodes(lost_);
  wire::HostMessage message;
  Verdict& verdict = *message.mutable_verdict();
  verdict.set_kind(Verdict::NODE_LOST);
  verdict.set_generation(world_->id().generation());
  verdict.set_node_rank(lost_);
  verdict.set_node(host.address());
  verdict.set_hostname(host.hostname());
  verdict.set_message(loss_message_);
  if (!last_reason_.empty())
    *verdict.mutable_message() += "; no other node took over as host: " + last_reason_;
  end(std::move(message));
}

void RendezvousClient::try_next_host(Clock::time_point now) {
  failover_->next(now);
  do_failover_step(now);
}

void RendezvousClient::set_host(const std::string& address, std::shared_ptr<JobHost> host) {
  address_ = address;
  host_clock_ = {};
  transport_ = host ? make_local_transport(std::move(host))
                    : make_grpc_transport(address_, options_.security, options_.heartbeat_timeout);
}

void RendezvousClient::do_failover_step(Clock::time_point now) {
  const FailoverSearch::Step step = failover_->step();
  if (NodeStream* stream = std::exchange(stream_, nullptr)) stream->cancel();
  phase_ = Phase::kConnecting;
  next_attempt_ = Clock::time_point::max();
  if (step.action == FailoverSearch::Step::Action::kGiveUp) {
    if (last_reason_.empty()) last_reason_ = "none could be reached";
    return give_up_failover();
  }
  const wire::Node& node = world_->nodes(step.node);
  host_ = step.node;
  if (step.action == FailoverSearch::Step::Action::kHost) {
    return emit(TakeOver{node.rdzv_port(), failover_state(now)});
  }
  set_host(host_port(node.address(), node.rdzv_port()));
  next_attempt_ = now;
  ticker_.due_by(now);
}

FailoverState RendezvousClient::failover_state(Clock::time_point now) const {
  FailoverState all;
  all.base = world_;
  if (!is_committed()) all.before = committed_;
  all.history = history_;  // this generation's end may have been reported already
  std::erase_if(all.history, [generation = world_->id().generation()](const GenerationResult& end) {
    return end.generation() >= generation;
  });
  all.lost = lost_;
  all.how = loss_message_;
  const bool ran = assignment_ && assignment_->world == world_;
  if (ran) {
    all.ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - generation_start_);
    all.step = furthest_step_;
  }
  return all;
}

void RendezvousClient::continue_failover(Clock::time_point now) {
  const bool hosting = failover_->step().action == FailoverSearch::Step::Action::kHost;
  if (now >= failover_->deadline() && !hosting) return try_next_host(now);
  if (now >= next_attempt_ && !stream_) connect();
}

void RendezvousClient::follow(const std::string& address, std::shared_ptr<JobHost> host) {
  const MutexLock lock(mutex_);
  if (!failover_ || left_) return;
  set_host(address, std::move(host));
  join_.set_hosts_rendezvous(true);
  next_attempt_ = Clock::now();
  ticker_.due_by(next_attempt_);
}

}  // namespace fleet
