#include "rendezvous/client.h"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/log.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"
#include "transport/tcp_listener.h"
#include "transport/validate.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kLeaveTimeout{1'000};

std::string new_instance() {
  std::random_device random;
  return std::to_string(getpid()) + "-" + std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace

RendezvousClient::RendezvousClient(Private, RendezvousClientOptions options, OnEvent on_event)
    : options_(std::move(options)),
      on_event_(std::move(on_event)),
      ticker_([this] { return tick(); }) {}

std::shared_ptr<RendezvousClient> RendezvousClient::make(RendezvousClientOptions options,
                                                         OnEvent on_event) {
  auto owner =
      std::make_shared<RendezvousClient>(Private(), std::move(options), std::move(on_event));
  RendezvousClient* const client = owner.get();
  return {client, [owner = std::move(owner)](RendezvousClient*) {
            owner->leave();
            owner->ticker_.stop();
            owner->background_.stop();
          }};
}

void RendezvousClient::start(wire::Join join) {
  const MutexLock lock(mutex_);
  FLEET_CHECK(phase_ == Phase::kIdle, "a RendezvousClient joins once");
  join_ = std::move(join);
  join_.set_instance(new_instance());
  set_host(options_.address, options_.host);
  begin_connecting(Clock::now());
}

void RendezvousClient::on_message(NodeStream* stream, wire::HostMessage message) {
  {
    const MutexLock lock(mutex_);
    const auto now = Clock::now();
    if (stream == stream_) monitor_.received(now, phase_ == Phase::kRunning);
    if (message.has_heartbeat()) monitor_.on_echo(message.heartbeat(), now);
    if (stream != stream_ || phase_ == Phase::kEnded || message.has_heartbeat()) return;
    try {
      validate(&message);
      on_host_message(*stream, std::move(message), now);
    } catch (const Error& error) {
      end(Refusal{error});
    }
  }
  deliver();
}

void RendezvousClient::on_host_message(const NodeStream& stream, wire::HostMessage message,
                                       Clock::time_point now) {
  switch (message.kind_case()) {
    case wire::HostMessage::kWelcome:
      return on_welcome(stream, message.welcome(), now);
    case wire::HostMessage::kRefused:
      return on_refusal({from_wire(message.refused())}, now);
    case wire::HostMessage::kAssignment:
      return on_assignment(std::move(*message.mutable_assignment()));
    case wire::HostMessage::kStart:
      return begin_generation(message.start().generation());
    case wire::HostMessage::kVerdict:
      return end(std::move(message));
    case wire::HostMessage::kStop:
      stop_commanded_ = true;
      break;
    case wire::HostMessage::kPeer:
      if (message.peer().kind() == PeerEvent::LOST && message.peer().node_rank() == host_) {
        reported_loss_ = message.peer().line();
      }
      break;
    case wire::HostMessage::kRestart:
      job_.on_restart(message.restart());
      search_.reset();
      phase_ = Phase::kRunning;
      break;
    default:
      break;
  }
  emit(std::move(message));
}

void RendezvousClient::on_welcome(const NodeStream& stream, const wire::Welcome& welcome,
                                  Clock::time_point now) {
  const auto host = peer_of(stream.peer());
  const bool remote = host && !host->local;  // loopback loses nothing
  if (remote) limit_retransmission_backoff_to(stream.peer());
  monitor_.on_welcome(welcome, remote ? stream.peer() : "", join_.job().nnodes(), now);
  if (phase_ == Phase::kConnecting) phase_ = Phase::kForming;
  if (search_) search_->on_admitted();
  ticker_.due_by(monitor_.next_heartbeat());
}

void RendezvousClient::on_refusal(Refusal refusal, Clock::time_point now) {
  const bool again = refusal.error.code() == ErrorCode::kPeerLost;
  if (search_) {  // it only rules out that host
    last_reason_ = refusal.error.what();
    found_host_gone(now);
  } else if (again && (phase_ == Phase::kRunning || job_.is_spare())) {
    lose_host(refusal.error.failure());
  } else if (again) {
    rejoin(refusal.error.failure());
  } else {
    end(std::move(refusal));
  }
}

void RendezvousClient::on_assignment(wire::Assignment message) {
  const int generation = message.generation();
  const auto history = std::move(*message.mutable_history());
  Assignment assignment = decode(std::move(message));
  assignment.store_address = address_;
  host_ = 0;
  search_.reset();
  if (assignment.node_rank >= 0) phase_ = Phase::kRunning;
  if (!job_.on_assignment(std::move(assignment), generation, {history.begin(), history.end()})) {
    return begin_generation(generation);
  }
  wire::NodeMessage accept;
  accept.mutable_accept()->set_generation(generation);
  if (stream_) stream_->send(std::move(accept));
}

void RendezvousClient::begin_generation(int generation) {
  if (const Assignment* begun = job_.begin(generation, Clock::now())) emit(*begun);
}

void RendezvousClient::on_stream_end(NodeStream* stream, const StreamEnd& how) {
  {
    const MutexLock lock(mutex_);
    if (stream != stream_) return;
    stream_ = nullptr;
    changed_.notify_all();
    if (left_ || phase_ == Phase::kEnded) return;
    last_reason_ = how.reason;
    if (search_) {
      found_host_gone(Clock::now());
    } else if (phase_ == Phase::kRunning || (phase_ == Phase::kForming && job_.is_spare())) {
      spdlog::debug("the stream to the host broke: {}", last_reason_);
      host_lost("vanished");
    } else if (how.kind == StreamEnd::Kind::kForeign) {
      end(Refusal{Error(ErrorCode::kUsage,
                        "the server there is not a fleetrun rendezvous of this version",
                        options_.address, "check --master, --ips and --rdzv_port")});
    } else if (how.kind == StreamEnd::Kind::kRefused) {
      end(Refusal{
          Error(ErrorCode::kUsage, last_reason_, options_.address,
                "that job accepts no other hosts; choose another --rdzv_port or --master")});
    } else {
      connect_again(Clock::now());
    }
  }
  deliver();
}

RendezvousClient::Clock::time_point RendezvousClient::tick() {
  auto next = Clock::time_point::max();
  {
    const MutexLock lock(mutex_);
    const auto now = Clock::now();
    if (left_ || phase_ == Phase::kEnded || phase_ == Phase::kIdle) return next;
    probe_host(now);
    if (search_) next = search_for_host(now);
    if (phase_ == Phase::kConnecting && !search_) {
      ask_other_addresses(now);
      retry_connect(now);
      next = std::min({next_attempt_, next_progress_, deadline_.next_look(now)});
    } else if (phase_ == Phase::kForming || phase_ == Phase::kRunning) {
      send_heartbeat(now);
      next = std::min(next, monitor_.due(now));
    }
  }
  deliver();
  return next;
}

void RendezvousClient::send_heartbeat(Clock::time_point now) {
  const bool alive = monitor_.is_alive(now, phase_ == Phase::kRunning);
  // This process itself may be the host: under a flood it may be slow, but it is not lost.
  if (!alive && join_.hosts_rendezvous()) monitor_.excuse_silence(now);
  if (!alive && !join_.hosts_rendezvous()) {
    const std::string how = "was silent for " + seconds_text(monitor_.times().max_silence);
    if (phase_ == Phase::kRunning) host_lost(how);
    if (stream_) stream_->cancel();  // while forming: try again
    return;
  }
  auto heartbeat = monitor_.take_heartbeat(now);
  if (heartbeat && stream_) stream_->send(std::move(*heartbeat));
}

void RendezvousClient::emit(RendezvousEvent event) {
  if (left_) return;
  const auto* message = std::get_if<wire::HostMessage>(&event);
  const size_t bytes = message ? message->ByteSizeLong() : 0;
  if (!events_.push(std::move(event), bytes)) {
    events_.drop_after(0);
    phase_ = Phase::kEnded;
    failure_ = Error(ErrorCode::kInternal, "this launcher does not handle its events");
    events_.push(Refusal{*failure_}, 0);
    leave_stream();
  }
  changed_.notify_all();
}

void RendezvousClient::end(RendezvousEvent event) {
  if (phase_ == Phase::kEnded) return;
  phase_ = Phase::kEnded;
  if (const auto* refusal = std::get_if<Refusal>(&event)) failure_ = refusal->error;
  if (const auto* message = std::get_if<wire::HostMessage>(&event)) {
    failure_ =
        Error(ErrorCode::kPeerLost, message->verdict().message(), "node " + join_.node().address());
  }
  emit(std::move(event));
  leave_stream();  // the host waits until all nodes have received the verdict
}

void RendezvousClient::leave_stream() {
  if (!stream_) return;
  wire::NodeMessage leave;
  leave.mutable_leave();
  stream_->send(std::move(leave));
  stream_->end();
}

void RendezvousClient::deliver() {
  const MutexLock lock(mutex_);
  if (callback_thread_ != std::thread::id()) return;  // the thread that delivers takes these too
  callback_thread_ = std::this_thread::get_id();
  while (!events_.empty() && !left_) {
    RendezvousEvent event = std::move(events_.front());
    events_.pop();
    const MutexUnlock unlock(mutex_);
    if (on_event_) on_event_(std::move(event));
  }
  callback_thread_ = {};
  changed_.notify_all();
}

Assignment RendezvousClient::join(wire::Join join) {
  start(std::move(join));
  const MutexLock lock(mutex_);
  while (!job_.begun() && !failure_ && !left_) changed_.wait(mutex_);
  if (job_.begun()) return *job_.begun();
  if (failure_) throw *failure_;
  throw Error(ErrorCode::kPeerLost, "left before all nodes had joined",
              "node " + join_.node().address());
}

std::optional<ClockOffset::Estimate> RendezvousClient::host_clock(int64_t own_ns) {
  const MutexLock lock(mutex_);
  return monitor_.host_clock(own_ns);
}

void RendezvousClient::send(wire::NodeMessage message) {
  const MutexLock lock(mutex_);
  job_.on_steps(message.steps());
  if (!stream_ || left_) return;
  if (message.has_exit()) {
    monitor_.use_host_clock(message.mutable_exit());
    cut(message.mutable_exit());
  } else if (message.has_stop()) {
    wire::StopRequest& stop = *message.mutable_stop();
    if (stop.at_ns() == 0) stop.set_at_ns(steady_ns(Clock::now()));
    monitor_.use_host_clock(&stop);
  }
  stream_->send(std::move(message));
}

void RendezvousClient::leave() {
  const MutexLock lock(mutex_);
  const bool first = !std::exchange(left_, true);
  if (first && phase_ != Phase::kIdle) {
    const auto gap =
        std::chrono::duration_cast<std::chrono::milliseconds>(monitor_.longest_silence());
    spdlog::debug("heartbeats: the host's longest silence was {} ms", gap.count());
  }
  changed_.notify_all();
  if (first) leave_stream();
  if (callback_thread_ == std::this_thread::get_id()) return;
  while (callback_thread_ != std::thread::id()) changed_.wait(mutex_);
  const auto end = Clock::now() + kLeaveTimeout;
  while (stream_ && changed_.wait_until(mutex_, end)) {
  }
  if (stream_) stream_->cancel();
}

}  // namespace fleet
