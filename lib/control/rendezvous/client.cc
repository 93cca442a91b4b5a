#include "rendezvous/client.h"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/log.h"
#include "rendezvous/job_lookup.h"
#include "rendezvous/types.h"
#include "transport/certificates.h"
#include "transport/control_messages.h"
#include "transport/tcp_listener.h"
#include "transport/validate.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::milliseconds kProbeInterval{1'000};
constexpr std::chrono::milliseconds kLeaveTimeout{1'000};
constexpr std::chrono::milliseconds kAskTimeout{1'000};
// All nodes of a job together compare their clocks this often.
constexpr int kSamplesPerSecond = 250;
// Up to this many nodes, the first heartbeats may coincide.
constexpr int kFewNodes = 64;

// Whether a peer answered, judged by gRPC's error text.
bool was_reached(const std::string& reason) {
  for (const char* word : {"refused", "unreachable", "route", "imed out", "imeout", "DNS"}) {
    if (reason.find(word) != std::string::npos) return false;
  }
  return true;
}

// Time over which the nodes of a large job spread their first connections. All at once would
// overflow the host's connection queue and cause repeated retries.
std::chrono::microseconds connect_jitter(const wire::Join& join) {
  constexpr int kQueue = 2000;
  constexpr std::chrono::microseconds kEach{400};
  return join.hosts_rendezvous() ? kEach * 0 : kEach * std::max(0, join.job().nnodes() - kQueue);
}

std::chrono::microseconds random_below(std::chrono::microseconds time) {
  if (time.count() == 0) return time;
  std::random_device random;
  return std::chrono::microseconds(random() % time.count());
}

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
  const auto now = Clock::now();
  deadline_ = RunningDeadline(options_.timeout, now);
  next_progress_ = next_lookup_ = now + options_.first_progress;
  phase_ = Phase::kConnecting;
  next_attempt_ = now + random_below(connect_jitter(join_));
  if (next_attempt_ == now) connect();
  ticker_.due_by(now);
}

void RendezvousClient::connect_by(Clock::time_point time) {
  next_attempt_ = time;
  ticker_.due_by(time);
}

void RendezvousClient::drop_stream() {
  phase_ = Phase::kConnecting;
  next_attempt_ = Clock::time_point::max();
  if (NodeStream* stream = std::exchange(stream_, nullptr)) stream->cancel();
}

void RendezvousClient::connect() {
  next_attempt_ = Clock::time_point::max();
  datagrams_.close();
  wire::NodeMessage join;
  *join.mutable_join() = join_;
  stream_ = transport_(shared_from_this(), std::move(join));
}

void RendezvousClient::on_message(NodeStream* stream, wire::HostMessage message) {
  {
    const MutexLock lock(mutex_);
    const auto now = Clock::now();
    if (stream == stream_) note_received(now);
    if (message.has_heartbeat()) {
      host_clock_.sample(message.heartbeat().sent_ns(), message.heartbeat().host_ns(),
                         steady_ns(now));
    }
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
  failure_detector_.set_times({std::chrono::milliseconds(welcome.heartbeat_interval_ms()),
                               std::chrono::milliseconds(welcome.max_silence_ms())});
  const auto host = peer_of(stream.peer());
  if (host && !host->local) {  // loopback loses nothing
    datagrams_.open(stream.peer(), welcome.session(), welcome.heartbeat_key());
    limit_retransmission_backoff_to(stream.peer());
  }
  if (phase_ == Phase::kConnecting) phase_ = Phase::kForming;
  if (search_) search_->on_admitted();
  // The first heartbeat also compares the clocks. In a large job all nodes are welcomed at once: a
  // random phase spreads their heartbeats.
  const std::chrono::microseconds interval = failure_detector_.times().heartbeat_interval;
  const bool few = join_.job().nnodes() <= kFewNodes;
  next_heartbeat_ = now + (few ? interval * 0 : random_below(interval));
  next_sample_ = now;
  ticker_.due_by(next_heartbeat_);
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

void RendezvousClient::note_received(Clock::time_point now) {
  if (phase_ == Phase::kRunning)
    longest_gap_ = std::max(longest_gap_, now - failure_detector_.last_received());
  failure_detector_.received(now);
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
      const auto now = Clock::now();
      probe_pending_ = probe_pending_ || was_reached(last_reason_);
      if (phase_ == Phase::kForming) {  // it had been reached: the time to reach it begins again
        deadline_ = RunningDeadline(options_.timeout, now);
        next_lookup_ = now + options_.first_progress;
      }
      phase_ = Phase::kConnecting;
      connect_by(now + kRetry);
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
      next = std::min({next, next_heartbeat_, failure_detector_.next_poll(now)});
    }
  }
  deliver();
  return next;
}

void RendezvousClient::retry_connect(Clock::time_point now) {
  if (deadline_.passed(now)) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.timeout);
    end(Refusal{Error(ErrorCode::kTimeout,
                      "cannot be reached within " + std::to_string(seconds.count()) + " s (" +
                          (last_reason_.empty() ? "no answer" : last_reason_) + ")",
                      "the rendezvous on node 0 at " + address_,
                      "start fleetrun on node 0 too, check that this node can reach it (firewall, "
                      "--rdzv_port), or raise --rdzv_timeout")});
    if (stream_) stream_->cancel();
    return;
  }
  if (now >= next_progress_) {
    next_progress_ = now + options_.progress_every;
    emit(join_progress("waiting for node 0's fleetrun at " + address_ +
                       (last_reason_.empty() ? "" : " (" + last_reason_ + ")")));
  }
  if (now >= next_attempt_ && !stream_) connect();
}

// The host has given up on this node, which was suspended while it waited for others.
void RendezvousClient::rejoin(const std::string& why) {
  drop_stream();
  emit(join_progress(why + " (suspended?); joining again"));
  job_ = {};
  const auto now = Clock::now();
  deadline_ = RunningDeadline(options_.timeout, now);
  connect_by(now);
}

void RendezvousClient::probe_host(Clock::time_point now) {
  if (!probe_pending_ || phase_ != Phase::kConnecting || now < next_probe_) return;
  if (!background_.run([self = shared_from_this()] { self->look_for_mismatch(); })) return;
  probe_pending_ = false;
  next_probe_ = now + kProbeInterval;
}

void RendezvousClient::look_for_mismatch() {
  const auto mismatch = find_security_mismatch(options_.address, options_.security);
  if (!mismatch) return;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kConnecting) end(Refusal{*mismatch});
  }
  deliver();
}

// The other nodes may have continued with another host; without a world, this node does not know
// which one.
void RendezvousClient::ask_other_addresses(Clock::time_point now) {
  if (now < next_lookup_) return;
  next_lookup_ = now + options_.progress_every;
  for (const std::string& address : options_.other_addresses) {
    ask_rendezvous(address, options_.security, kAskTimeout,
                   [weak = weak_from_this(), address](const auto& reply) {
                     if (const auto self = weak.lock()) self->on_other_address(address, reply);
                   });
  }
}

void RendezvousClient::on_other_address(const std::string& address,
                                        const std::optional<wire::DescribeReply>& reply) {
  {
    const MutexLock lock(mutex_);
    const bool waits = phase_ == Phase::kConnecting && !search_ && !left_;
    if (!waits || address == address_) return;
    if (!runs_job(reply, join_.job().job_id())) return;
    drop_stream();
    emit(join_progress("the job has another host now: joining its rendezvous at " + address));
    set_host(address);
    last_reason_.clear();
    connect_by(Clock::now());
  }
  deliver();
}

void RendezvousClient::set_host(const std::string& address, std::shared_ptr<JobHost> host) {
  address_ = address;
  host_clock_ = {};
  transport_ = host ? make_local_transport(std::move(host))
                    : make_grpc_transport(address_, options_.security, options_.heartbeat_timeout);
}

void RendezvousClient::send_heartbeat(Clock::time_point now) {
  if (datagrams_.receive()) note_received(now);
  const bool alive = failure_detector_.poll(now);
  // This process itself may be the host: under a flood it may be slow, but it is not lost.
  if (!alive && join_.hosts_rendezvous()) failure_detector_.received(now);
  if (!alive && !join_.hosts_rendezvous()) {
    const std::string how = "was silent for " + seconds_text(failure_detector_.times().max_silence);
    if (phase_ == Phase::kRunning) host_lost(how);
    if (stream_) stream_->cancel();  // while forming: try again
    return;
  }
  if (now < next_heartbeat_) return;
  next_heartbeat_ = now + failure_detector_.times().heartbeat_interval;
  wire::NodeMessage message;
  message.mutable_heartbeat()->set_count(++heartbeats_sent_);
  message.mutable_heartbeat()->set_sent_ns(steady_ns(now));
  if (now >= next_sample_) {
    message.mutable_heartbeat()->set_sample(true);
    next_sample_ =
        now + std::chrono::milliseconds(1'000) * join_.job().nnodes() / kSamplesPerSecond;
  }
  if (stream_) stream_->send(std::move(message));
  datagrams_.send();
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

// Puts the message's time, if any, on the host's clock.
template <typename Message>
void RendezvousClient::use_host_clock(Message* message) const {
  const auto at = host_clock_.at(message->at_ns());
  const bool known = at && message->at_ns() != 0;
  message->clear_at_ns();
  message->clear_at_error_ns();
  if (!known) return;
  message->set_at_ns(at->host_ns);
  message->set_at_error_ns(at->error_ns);
}

std::optional<ClockOffset::Estimate> RendezvousClient::host_clock(int64_t own_ns) {
  const MutexLock lock(mutex_);
  return host_clock_.at(own_ns);
}

void RendezvousClient::send(wire::NodeMessage message) {
  const MutexLock lock(mutex_);
  job_.on_steps(message.steps());
  if (!stream_ || left_) return;
  if (message.has_exit()) {
    use_host_clock(message.mutable_exit());
    cut(message.mutable_exit());
  } else if (message.has_stop()) {
    wire::StopRequest& stop = *message.mutable_stop();
    if (stop.at_ns() == 0) stop.set_at_ns(steady_ns(Clock::now()));
    use_host_clock(message.mutable_stop());
  }
  stream_->send(std::move(message));
}

void RendezvousClient::leave() {
  const MutexLock lock(mutex_);
  const bool first = !std::exchange(left_, true);
  if (first && phase_ != Phase::kIdle) {
    const auto gap = std::chrono::duration_cast<std::chrono::milliseconds>(longest_gap_);
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
