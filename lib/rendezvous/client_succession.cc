// RendezvousClient after the loss of its host: it finds the next host or becomes it.
#include "rendezvous/client_impl.h"
#include "rendezvous/grpc_setup.h"

namespace fleet {
namespace {

// Other nodes may notice the loss this much later.
constexpr std::chrono::milliseconds kSeekMargin{1'000};

}  // namespace

// With restarts, the other nodes continue without the host. Without restarts, or if the job was
// being stopped, the job ends.
void RendezvousClient::Impl::host_lost(const std::string& how) {
  lost_ = host_;
  const NodePlacement& host = world_->nodes.at(static_cast<size_t>(lost_));
  loss_ = "node " + std::to_string(lost_) + " (" + node_label(host.address, host.hostname) +
          "), which hosts the rendezvous, was lost: its fleetrun " + how;
  if (!host_loss_.empty()) loss_ = std::exchange(host_loss_, {});
  const auto now = Clock::now();
  std::vector<bool> can_host;
  for (const NodePlacement& node : world_->nodes) can_host.push_back(node.rdzv_port > 0);
  // A node that has received a world but not its Start cannot know whether that world counts. It
  // can find out if it knows the preceding world, from which another part of the job might continue
  // instead.
  const bool knows = proven_.get() && (counts() || proven_->name() == world_->base);
  told_.reset();
  look_ = false;
  info_.last = info_.proven = {};
  if (node_rank_ >= 0) {  // a spare has no vote
    info_.last = world_->name();
    if (proven_.get()) info_.proven = proven_->name();
  }
  info_.hosts_rendezvous = false;
  seeking_.emplace(std::move(can_host), lost_, knows ? node_rank_ : -1,
                   times_.silence + kSeekMargin, now);
  const bool ends = info_.job.restarts.max_restarts == 0 || world_->nodes.size() < 2 ||
                    node_rank_ == 0 || stop_ordered_;
  if (!ends) {
    const std::string line = loss_ + "; looking for the next host";
    if (node_rank_ < 0) {
      say(JoinProgress{line});
    } else {
      say(HostLost{world_->epoch, line});
    }
  }
  phase_ = Phase::kConnecting;
  last_reason_.clear();
  if (ends) return try_next_failed();
  follow_step(now);
}

bool RendezvousClient::Impl::counts() const { return proven_ == world_; }

void RendezvousClient::Impl::try_next_failed() {
  const NodePlacement& host = world_->nodes.at(static_cast<size_t>(lost_));
  Verdict verdict;
  verdict.kind = VerdictKind::kNodeLost;
  verdict.epoch = world_->epoch;
  verdict.node_rank = lost_;
  verdict.node = host.address;
  verdict.hostname = host.hostname;
  verdict.message = loss_;
  if (!last_reason_.empty())
    verdict.message += "; no other node took over as host: " + last_reason_;
  end(std::move(verdict));
}

void RendezvousClient::Impl::try_next(Clock::time_point now) {
  seeking_->next(now);
  follow_step(now);
}

void RendezvousClient::Impl::go_to(const std::string& address) {
  address_ = address;
  host_clock_ = {};
  stub_ = wire::Rendezvous::NewStub(
      make_channel(address_, options_.security, options_.patience, Liveness::kBeats));
}

void RendezvousClient::Impl::follow_step(Clock::time_point now) {
  const Succession::Step step = seeking_->step();
  if (NodeStream* stream = std::exchange(stream_, nullptr)) stream->cancel();
  phase_ = Phase::kConnecting;
  next_attempt_ = Clock::time_point::max();
  if (step.what == Succession::Step::What::kGiveUp) {
    if (last_reason_.empty()) last_reason_ = "none could be reached";
    return try_next_failed();
  }
  const NodePlacement& node = world_->nodes.at(static_cast<size_t>(step.node));
  host_ = step.node;
  if (step.what == Succession::Step::What::kHost) {
    return say(TakeOver{node.rdzv_port, inheritance(now)});
  }
  go_to(host_port(node.address, node.rdzv_port));
  next_attempt_ = now;
  ticker_.due_by(now);
}

Inheritance RendezvousClient::Impl::inheritance(Clock::time_point now) const {
  Inheritance all;
  all.base = world_;
  if (!counts()) all.before = proven_;
  all.history = history_;  // this generation's end may have been reported already
  std::erase_if(all.history, [this](const EpochEnd& end) { return end.epoch >= world_->epoch; });
  all.lost = lost_;
  all.how = loss_;
  const bool ran = assignment_ && assignment_->world == world_;
  if (ran) all.ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - epoch_began_);
  return all;
}

void RendezvousClient::Impl::seek(Clock::time_point now) {
  const bool hosting = seeking_->step().what == Succession::Step::What::kHost;
  if (now >= seeking_->deadline() && !hosting) return try_next(now);
  if (now >= next_attempt_ && !stream_) connect();
}

void RendezvousClient::Impl::follow(const std::string& address) {
  std::lock_guard lock(mutex_);
  if (!seeking_ || left_) return;
  go_to(address);
  info_.hosts_rendezvous = true;
  next_attempt_ = Clock::now();
  ticker_.due_by(next_attempt_);
}

}  // namespace fleet
