// RendezvousClient while it has no connection to a host: attempts, and why they fail.
#include <algorithm>
#include <utility>

#include "rendezvous/client.h"
#include "rendezvous/job_lookup.h"
#include "rendezvous/random_delay.h"
#include "transport/certificates.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::milliseconds kProbeInterval{1'000};
constexpr std::chrono::milliseconds kLookupTimeout{1'000};

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

}  // namespace

void RendezvousClient::begin_connecting(Clock::time_point now) {
  deadline_ = RunningDeadline(options_.timeout, now);
  next_progress_ = next_lookup_ = now + options_.first_progress;
  phase_ = Phase::kConnecting;
  next_attempt_ = now + random_below(connect_jitter(join_));
  if (next_attempt_ == now) connect();
  ticker_.due_by(now);
}

void RendezvousClient::connect_again(Clock::time_point now) {
  probe_pending_ = probe_pending_ || was_reached(last_reason_);
  if (phase_ == Phase::kForming) {  // it had been reached: the time to reach it begins again
    deadline_ = RunningDeadline(options_.timeout, now);
    next_lookup_ = now + options_.first_progress;
  }
  phase_ = Phase::kConnecting;
  connect_by(now + kRetry);
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
  monitor_.on_connecting();
  wire::NodeMessage join;
  *join.mutable_join() = join_;
  stream_ = transport_(shared_from_this(), std::move(join));
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
    ask_rendezvous(address, options_.security, kLookupTimeout,
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
  monitor_.on_host_changed();
  transport_ = host ? make_local_transport(std::move(host))
                    : make_grpc_transport(address_, options_.security, options_.heartbeat_timeout);
}

}  // namespace fleet
