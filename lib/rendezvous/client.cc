#include "rendezvous/client.h"

#include <unistd.h>

#include <random>

#include "base/log.h"
#include "rendezvous/client_impl.h"
#include "rendezvous/grpc_setup.h"
#include "rendezvous/mismatch.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::milliseconds kLookAgain{1'000};
constexpr std::chrono::milliseconds kGoodbye{1'000};
// Others may see a loss so much later.
constexpr std::chrono::milliseconds kSeekMargin{1'000};

// Whether somebody answered, as far as gRPC's words tell.
bool was_reached(const std::string& reason) {
  for (const char* word : {"refused", "unreachable", "route", "imed out", "imeout", "DNS"}) {
    if (reason.find(word) != std::string::npos) return false;
  }
  return true;
}

// How long the nodes of a large job take to knock: all at once they would be more than the host's
// queue of connections holds, and those that find it full try again and again.
std::chrono::microseconds rush(const NodeInfo& info) {
  constexpr int kQueue = 2000;
  constexpr std::chrono::microseconds kEach{400};
  return info.hosts_rendezvous ? kEach * 0 : kEach * std::max(0, info.job.nnodes - kQueue);
}

std::chrono::microseconds random_part_of(std::chrono::microseconds time) {
  if (time.count() == 0) return time;
  std::random_device random;
  return std::chrono::microseconds(random() % time.count());
}

int64_t ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string new_instance() {
  std::random_device random;
  return std::to_string(getpid()) + "-" + std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace

RendezvousClient::Impl::Impl(RendezvousClientOptions options, OnEvent on_event)
    : options_(std::move(options)),
      on_event_(std::move(on_event)),
      ticker_([this] { return tick(); }) {}

void RendezvousClient::Impl::start(NodeInfo info) {
  std::lock_guard lock(mutex_);
  FLEET_CHECK(phase_ == Phase::kIdle, "a RendezvousClient joins once");
  info_ = std::move(info);
  info_.instance = new_instance();
  go_to(options_.address);
  const auto now = Clock::now();
  deadline_ = now + options_.timeout;
  next_progress_ = now + options_.first_progress;
  last_tick_ = now;
  phase_ = Phase::kConnecting;
  next_attempt_ = now + random_part_of(rush(info_));
  if (next_attempt_ == now) connect();
  ticker_.due_by(std::min({next_attempt_, next_progress_, deadline_}));
}

void RendezvousClient::Impl::connect() {
  next_attempt_ = Clock::time_point::max();
  wire::NodeMessage join;
  *join.mutable_join() = to_wire(info_);
  stream_ = new NodeStream(shared_from_this());
  stream_->begin(stub_.get(), std::move(join));
}

void RendezvousClient::Impl::heard(NodeStream* stream, const wire::HostMessage& message) {
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (phase_ == Phase::kRunning) longest_gap_ = std::max(longest_gap_, now - last_heard_);
    last_heard_ = now;
    if (message.has_beat()) {
      host_clock_.sample(message.beat().sent_ns(), message.beat().host_ns(), ns(last_heard_));
    }
    if (stream != stream_ || phase_ == Phase::kEnded || message.has_beat()) return;
    try {
      HostEvent event = from_wire(message);
      if (const auto* welcome = std::get_if<Welcome>(&event)) {
        times_ = *welcome;
        if (phase_ == Phase::kConnecting) phase_ = Phase::kForming;
        ticker_.due_by(last_heard_);  // the first beat also compares the clocks
      } else if (const auto* start = std::get_if<Start>(&event)) {
        begin(start->epoch);
      } else {
        auto& wanted = std::get<RendezvousEvent>(event);
        const bool last =
            std::holds_alternative<Refusal>(wanted) || std::holds_alternative<Verdict>(wanted);
        if (auto* assignment = std::get_if<Assignment>(&wanted)) {
          told(std::move(*assignment), message.assignment().world().epoch());
        } else {
          if (std::holds_alternative<StopOrder>(wanted)) stop_ordered_ = true;
          if (const auto* order = std::get_if<RestartOrder>(&wanted)) {
            history_.push_back(order->end);
            seeking_.reset();
            phase_ = Phase::kRunning;
          }
          // One that could have been the next host is not.
          if (seeking_ && std::holds_alternative<Refusal>(wanted)) {
            last_reason_ = std::get<Refusal>(wanted).error.what();
            try_next(Clock::now());
          } else {
            last ? end(std::move(wanted)) : say(std::move(wanted));
          }
        }
      }
    } catch (const Error& error) {
      end(Refusal{error});
    }
  }
  deliver();
}

// The world of the first epoch counts at once, that of a later one when all its nodes know it.
void RendezvousClient::Impl::told(Assignment assignment, int epoch) {
  assignment.store_address = address_;
  world_ = assignment.world;
  node_rank_ = assignment.node_rank;
  seeking_.reset();
  told_.reset();
  if (node_rank_ < 0) return;  // a spare
  phase_ = Phase::kRunning;
  told_ = std::move(assignment);
  told_epoch_ = epoch;
  if (epoch == 1) return begin(epoch);
  wire::NodeMessage message;
  message.mutable_accept()->set_epoch(epoch);
  if (stream_) stream_->send(std::move(message));
}

void RendezvousClient::Impl::begin(int epoch) {
  if (!told_ || told_epoch_ != epoch) return;
  assignment_ = *told_;
  told_.reset();
  epoch_began_ = Clock::now();
  say(*assignment_);
}

void RendezvousClient::Impl::stream_done(NodeStream* stream, const grpc::Status& status) {
  {
    std::lock_guard lock(mutex_);
    if (stream != stream_) return;
    stream_ = nullptr;
    changed_.notify_all();
    if (left_ || phase_ == Phase::kEnded) return;
    last_reason_ = status.ok() ? "it closed the connection" : reason_of(status);
    const bool spare = phase_ == Phase::kForming && node_rank_ < 0 && world_.get() != nullptr;
    if (phase_ == Phase::kRunning || (spare && !seeking_)) {
      host_lost("vanished (" + last_reason_ + ")");
    } else if (seeking_) {
      phase_ = Phase::kConnecting;
      next_attempt_ = Clock::now() + kRetry;
      ticker_.due_by(next_attempt_);
    } else if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      end(Refusal{Error(ErrorCode::kUsage, "what listens there is no rendezvous of fleetrun",
                        options_.address, "look at --master, --ips and --rdzv_port")});
    } else if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      end(Refusal{
          Error(ErrorCode::kUsage, last_reason_, options_.address,
                "that job runs on its host alone; choose another --rdzv_port or --master")});
    } else {
      look_ = look_ || was_reached(last_reason_);
      phase_ = Phase::kConnecting;
      next_attempt_ = Clock::now() + kRetry;
      ticker_.due_by(next_attempt_);
    }
  }
  deliver();
}

RendezvousClient::Impl::Clock::time_point RendezvousClient::Impl::tick() {
  auto next = Clock::time_point::max();
  look_who_is_there();
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (left_ || phase_ == Phase::kEnded || phase_ == Phase::kIdle) return next;
    if (phase_ == Phase::kConnecting && seeking_) {
      seek(now);
      const bool hosting = seeking_ && seeking_->step().what == Succession::Step::What::kHost;
      next = seeking_ && !hosting ? std::min(next_attempt_, seeking_->deadline()) : next_attempt_;
    } else if (phase_ == Phase::kConnecting) {
      keep_trying(now);
      next = std::min({next_attempt_, next_progress_, deadline_});
    } else {
      beat(now);
      next = now + times_.beat;
    }
    last_tick_ = now;
  }
  deliver();
  return next;
}

void RendezvousClient::Impl::keep_trying(Clock::time_point now) {
  if (now >= deadline_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.timeout);
    end(Refusal{Error(ErrorCode::kTimeout,
                      "cannot be reached within " + std::to_string(seconds.count()) + " s (" +
                          (last_reason_.empty() ? "no answer" : last_reason_) + ")",
                      "the rendezvous on node 0 at " + options_.address,
                      "start fleetrun on node 0 too, see that this node can reach it (firewall, "
                      "--rdzv_port), or raise --rdzv_timeout")});
    if (stream_) stream_->cancel();
    return;
  }
  if (now >= next_progress_) {
    next_progress_ = now + options_.progress_every;
    say(JoinProgress{"waiting for node 0's fleetrun at " + options_.address +
                     (last_reason_.empty() ? "" : " (" + last_reason_ + ")")});
  }
  if (now >= next_attempt_ && !stream_) connect();
}

void RendezvousClient::Impl::look_who_is_there() {
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (!look_ || phase_ != Phase::kConnecting || left_ || now < next_look_) return;
    look_ = false;
    next_look_ = now + kLookAgain;
  }
  const auto mismatch = find_mismatch(options_.address, options_.security);
  if (!mismatch) return;
  {
    std::lock_guard lock(mutex_);
    if (phase_ == Phase::kConnecting) end(Refusal{*mismatch});
  }
  deliver();
}

void RendezvousClient::Impl::beat(Clock::time_point now) {
  // Time that this process slept itself is not the host's silence.
  if (now - last_tick_ > std::min(3 * times_.beat, times_.silence / 2)) last_heard_ = now;
  if (now - last_heard_ >= times_.silence) {
    const std::string how = "was silent for " + std::to_string(times_.silence.count()) + " ms";
    if (phase_ == Phase::kRunning) host_lost(how);
    if (stream_) stream_->cancel();  // while forming: tried again
    return;
  }
  wire::NodeMessage message;
  message.mutable_beat()->set_count(++beats_);
  message.mutable_beat()->set_sent_ns(ns(now));
  if (stream_) stream_->send(std::move(message));
}

// With restarts the others go on without it; else, or when it was being stopped, the job ends.
void RendezvousClient::Impl::host_lost(const std::string& how) {
  const NodePlacement& host = world_->nodes.at(0);
  loss_ = "node 0 (" + node_label(host.address, host.hostname) +
          "), which hosts the rendezvous, was lost: its fleetrun " + how;
  const auto now = Clock::now();
  std::vector<bool> can_host;
  for (const NodePlacement& node : world_->nodes) can_host.push_back(node.rdzv_port > 0);
  // A world that has not begun may not count: another part may go on from the one before. Who has
  // accepted it follows somebody who knows better, and hosts for nobody.
  const bool begun = assignment_ && assignment_->world == world_;
  told_.reset();
  look_ = false;
  info_.last_epoch = node_rank_ < 0 ? 0 : world_->epoch;  // a spare has no vote
  info_.last_leader = world_->leader;
  info_.hosts_rendezvous = false;
  seeking_.emplace(std::move(can_host), begun ? node_rank_ : -1, times_.silence + kSeekMargin, now);
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

void RendezvousClient::Impl::try_next_failed() {
  Verdict verdict;
  verdict.kind = VerdictKind::kNodeLost;
  verdict.epoch = world_->epoch;
  verdict.node_rank = 0;
  verdict.node = world_->nodes.at(0).address;
  verdict.hostname = world_->nodes.at(0).hostname;
  verdict.message = loss_;
  if (!last_reason_.empty()) verdict.message += "; no other node hosts it now: " + last_reason_;
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
  if (step.what == Succession::Step::What::kHost) {
    const auto ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - epoch_began_);
    std::vector<EpochEnd> before = history_;  // this epoch's end may have been told already
    std::erase_if(before, [this](const EpochEnd& end) { return end.epoch >= world_->epoch; });
    return say(TakeOver{node.rdzv_port, {world_, std::move(before), loss_, ran_for}});
  }
  go_to(host_port(node.address, node.rdzv_port));
  next_attempt_ = now;
  ticker_.due_by(now);
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

void RendezvousClient::Impl::say(RendezvousEvent event) {
  if (left_) return;
  events_.push_back(std::move(event));
  changed_.notify_all();
}

void RendezvousClient::Impl::end(RendezvousEvent event) {
  if (phase_ == Phase::kEnded) return;
  phase_ = Phase::kEnded;
  if (const auto* refusal = std::get_if<Refusal>(&event)) failure_ = refusal->error;
  if (const auto* verdict = std::get_if<Verdict>(&event)) {
    failure_ = Error(ErrorCode::kPeerLost, verdict->message, "node " + info_.address);
  }
  say(std::move(event));
}

void RendezvousClient::Impl::deliver() {
  std::unique_lock lock(mutex_);
  if (emitter_ != std::thread::id()) return;  // whoever is at it takes these too
  emitter_ = std::this_thread::get_id();
  while (!events_.empty() && !left_) {
    RendezvousEvent event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    if (on_event_) on_event_(std::move(event));
    lock.lock();
  }
  emitter_ = {};
  changed_.notify_all();
}

Assignment RendezvousClient::Impl::wait_for_outcome() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return assignment_ || failure_ || left_; });
  if (assignment_) return *assignment_;
  if (failure_) throw *failure_;
  throw Error(ErrorCode::kPeerLost, "left before all nodes had come", "node " + info_.address);
}

void RendezvousClient::Impl::send(wire::NodeMessage message) {
  std::lock_guard lock(mutex_);
  if (stream_ && !left_) stream_->send(std::move(message));
}

void RendezvousClient::Impl::report(RankExit exit) {
  wire::NodeMessage message;
  {
    std::lock_guard lock(mutex_);
    const auto at = host_clock_.at(exit.at_ns);
    const bool known = at && exit.at_ns != 0;
    exit.at_ns = known ? at->host_ns : 0;
    exit.at_error_ns = known ? at->error_ns : -1;
  }
  *message.mutable_exit() = to_wire(exit);
  send(std::move(message));
}

void RendezvousClient::Impl::leave() {
  std::unique_lock lock(mutex_);
  const bool first = !std::exchange(left_, true);
  if (first && phase_ != Phase::kIdle) {
    const auto gap = std::chrono::duration_cast<std::chrono::milliseconds>(longest_gap_);
    spdlog::debug("heartbeats: the host's longest silence was {} ms", gap.count());
  }
  changed_.notify_all();
  if (first && stream_) {
    wire::NodeMessage goodbye;
    goodbye.mutable_leave();
    stream_->send(std::move(goodbye));
    stream_->end();
  }
  if (emitter_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [this] { return emitter_ == std::thread::id(); });
  if (!changed_.wait_for(lock, kGoodbye, [this] { return stream_ == nullptr; })) {
    if (stream_) stream_->cancel();
  }
}

void RendezvousClient::Impl::close() {
  leave();
  ticker_.stop();
}

RendezvousClient::RendezvousClient(RendezvousClientOptions options, OnEvent on_event)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(on_event))) {}

RendezvousClient::~RendezvousClient() { impl_->close(); }

void RendezvousClient::start(NodeInfo info) { impl_->start(std::move(info)); }

Assignment RendezvousClient::join(NodeInfo info) {
  impl_->start(std::move(info));
  return impl_->wait_for_outcome();
}

void RendezvousClient::report(RankExit exit) { impl_->report(std::move(exit)); }

void RendezvousClient::finish() {
  wire::NodeMessage message;
  message.mutable_finished();
  impl_->send(std::move(message));
}

void RendezvousClient::follow(const std::string& address) { impl_->follow(address); }

void RendezvousClient::ready(int epoch) {
  wire::NodeMessage message;
  message.mutable_ready()->set_epoch(epoch);
  impl_->send(std::move(message));
}

void RendezvousClient::report(const RankStall& stall) {
  wire::NodeMessage message;
  *message.mutable_stall() = to_wire(stall);
  impl_->send(std::move(message));
}

void RendezvousClient::report(const std::vector<RankPace>& pace) {
  wire::NodeMessage message;
  *message.mutable_pace() = to_wire(pace);
  impl_->send(std::move(message));
}

void RendezvousClient::send_stacks(const std::vector<RankStack>& stacks) {
  wire::NodeMessage message;
  *message.mutable_stacks() = to_wire(stacks);
  impl_->send(std::move(message));
}

void RendezvousClient::request_stop(int signal, bool kill) {
  wire::NodeMessage message;
  message.mutable_stop()->set_signal(signal);
  message.mutable_stop()->set_kill(kill);
  impl_->send(std::move(message));
}

void RendezvousClient::request_signal(int signal) {
  wire::NodeMessage message;
  message.mutable_signal()->set_signal(signal);
  impl_->send(std::move(message));
}

void RendezvousClient::request_stacks() {
  wire::NodeMessage message;
  message.mutable_stack_wish();
  impl_->send(std::move(message));
}

void RendezvousClient::leave() { impl_->leave(); }

}  // namespace fleet
