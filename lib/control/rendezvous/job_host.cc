#include "rendezvous/job_host.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/running_clock.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// Connections beyond the job's nodes: for reconnecting and for refused nodes.
constexpr size_t kSpareSessions = 256;

std::shared_ptr<const std::string> share(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

uint64_t new_token() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

std::string hostname() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

JobHost::JobHost(const JobSpec& job, JobTimes times, std::string display_address,
                 const FailoverState* from)
    : job_(from ? JobState(job, times, std::move(display_address), Clock::now(), *from)
                : JobState(job, times, std::move(display_address), Clock::now())),
      heartbeat_interval_(times.heartbeat_interval),
      probe_token_(new_token()),
      ticker_([this] { return tick(); }) {
  const MutexLock lock(mutex_);
  due_ = next_deadline();
  ticker_.due_by(due_);
}

JobHost::~JobHost() { ticker_.stop(); }

template <typename Work>
void JobHost::run(Work work) {
  std::vector<std::function<void()>> answers;
  {
    const MutexLock lock(mutex_);
    work();
    close_store_if_over();
    if (const auto next = next_deadline(); next < due_) {
      due_ = next;
      ticker_.due_by(next);
    }
    answers = store_.take_ready();
  }
  for (const auto& answer : answers) answer();
}

JobHost::Clock::time_point JobHost::next_deadline() {
  const auto wait = store_.next_deadline();
  const auto next = job_.next_deadline();
  return wait ? std::min(next, job_.clock().steady(*wait)) : next;
}

JobHost::Clock::time_point JobHost::tick() {
  auto next = Clock::time_point::max();
  run([&]() FLEET_REQUIRES(mutex_) {
    const auto now = Clock::now();
    receive_datagrams(now);
    if (datagrams_ && now >= next_datagrams_) {
      datagrams_->send();
      next_datagrams_ = now + heartbeat_interval_ * 3 / 4;  // calls may come a little early or late
    }
    step(TimePassed{}, now);
    store_.advance(job_.clock().at(now));
    close_store_if_over();
    next = due_ = next_deadline();  // the ticker takes it from here
  });
  return next;
}

void JobHost::use_datagram_heartbeats(HostHeartbeats datagrams) {
  const MutexLock lock(mutex_);
  datagrams_ = std::move(datagrams);
}

void JobHost::receive_datagrams(Clock::time_point now) {
  if (!datagrams_) return;
  for (const SessionId id : datagrams_->receive()) {
    step(FromNode{id, envelope(&wire::NodeMessage::mutable_heartbeat)}, now);
  }
}

void JobHost::step(JobEvent event, Clock::time_point now) {
  const wire::HostMessage* last = nullptr;
  std::shared_ptr<const std::string> bytes;  // of `last`
  const std::vector<Outgoing> outgoing = job_.step(std::move(event), now);
  for (const Outgoing& out : outgoing) {
    if (out.world && out.world->id().generation() != world_generation_) {
      world_ = share(encode(*out.world));
      world_generation_ = out.world->id().generation();
      store_.open(world_generation_);  // before any node can start a rank
    }
    const auto session = sessions_.find(out.to);
    if (session == sessions_.end()) continue;
    if (out.message.get() != last) bytes = share(out.message->SerializeAsString());
    last = out.message.get();
    if (datagrams_ && out.message->has_welcome()) {
      wire::HostMessage own = *out.message;
      own.mutable_welcome()->set_session(out.to);
      own.mutable_welcome()->set_heartbeat_key(datagrams_->key_of(out.to));
      bytes = share(own.SerializeAsString());
      last = nullptr;
    }
    send(session->second, out.world ? EncodedMessage{bytes, world_} : EncodedMessage{bytes}, now);
    if (out.last) session->second->end();
  }
}

void JobHost::close_store_if_over() {
  const auto phase = job_.phase();
  if (phase == JobState::Phase::kStopping || phase == JobState::Phase::kGathering) {
    store_.close(
        Error(ErrorCode::kPeerLost,
              "generation " + std::to_string(job_.generation()) + " is over: the job is restarted",
              "store of job '" + job_.config().job_id() + "'"));
  }
  if (phase == JobState::Phase::kEnded) {
    store_.close(Error(ErrorCode::kPeerLost, "the job has ended: " + job_.outcome(),
                       "store of job '" + job_.config().job_id() + "'"));
  }
}

bool JobHost::open(NodeSession* session) {
  bool accepted = false;
  run([&]() FLEET_REQUIRES(mutex_) {
    session->id_ = ++last_session_;
    sessions_.emplace(session->id(), session);
    accepted = !closing_ && sessions_.size() <= 2u * job_.config().nnodes() + kSpareSessions;
    accepted ? step(SessionOpened{session->id()}, Clock::now()) : session->end();
  });
  return accepted;
}

bool JobHost::on_message(NodeSession* session, wire::NodeMessage message) {
  try {
    validate(&message);
  } catch (const Error& error) {
    run([&]() FLEET_REQUIRES(mutex_) {
      const auto refused = envelope(&wire::HostMessage::mutable_refused, to_wire(error));
      session->send({share(refused.SerializeAsString())});
    });
    on_stream_closed(session);
    return false;
  }
  try {
    run([&]() FLEET_REQUIRES(mutex_) {
      const auto now = Clock::now();
      const bool leaves = message.has_leave();
      if (message.has_heartbeat()) {
        if (message.heartbeat().probe() == probe_token_) {
          return on_probe(session, message.heartbeat(), now);
        }
        receive_datagrams(now);
        echo(session, message.heartbeat(), now);
      }
      step(FromNode{session->id(), std::move(message)}, now);
      if (leaves) session->end();
    });
    return true;
  } catch (const std::exception& error) {  // gRPC would swallow it and stop reading the stream
    spdlog::error("internal error: {}: please report this bug", error.what());
    on_stream_closed(session);
    return false;
  }
}

void JobHost::send(NodeSession* session, EncodedMessage message, Clock::time_point now) {
  session->last_sent_ = now;
  session->send(std::move(message));
}

// Echoes cost as much as heartbeats: only where the node compares its clock, or might take this
// host for lost.
void JobHost::echo(NodeSession* session, const wire::Heartbeat& heartbeat, Clock::time_point now) {
  if (!heartbeat.sample() && now - session->last_sent_ < job_.quiet_limit()) return;
  wire::HostMessage echo;
  *echo.mutable_heartbeat() = heartbeat;
  echo.mutable_heartbeat()->set_host_ns(steady_ns(Clock::now()));
  send(session, {share(echo.SerializeAsString())}, now);
}

void JobHost::on_probe(NodeSession* session, const wire::Heartbeat& probe, Clock::time_point now) {
  if (std::exchange(probe_, session->id()) != session->id()) {
    step(SessionLost{session->id()}, now);  // it is not the session of a node
  }
  step(TakenIn{Clock::time_point(std::chrono::nanoseconds(probe.sent_ns()))}, now);
}

void JobHost::on_stream_closed(NodeSession* session) {
  run([&]() FLEET_REQUIRES(mutex_) {
    step(SessionLost{session->id()}, Clock::now());
    session->end();
  });
}

void JobHost::on_session_done(NodeSession* session) {
  const MutexLock lock(mutex_);
  sessions_.erase(session->id());
  step(SessionLost{session->id()}, Clock::now());
  if (session->id() == probe_) {
    probe_ = 0;
    step(TakenIn{}, Clock::now());
  }
  if (datagrams_) datagrams_->forget(session->id());
  session_closed_.notify_all();
}

void JobHost::shut_down(std::chrono::milliseconds drain) {
  run([&]() FLEET_REQUIRES(mutex_) {
    closing_ = true;
    step(HostEnds{}, Clock::now());
  });
  const MutexLock lock(mutex_);
  // Members close their streams after receiving the verdict. Closing earlier would lose data in
  // flight with the connection. Silent nodes are abandoned.
  for (const auto& [id, session] : sessions_) {
    if (!job_.verdict() || !job_.is_member(id)) session->end();
  }
  RunningDeadline end(drain);
  while (!sessions_.empty() && !end.passed()) session_closed_.wait_until(mutex_, end.next_look());
  for (const auto& [id, session] : sessions_) session->end();
}

wire::DescribeReply JobHost::describe() {
  wire::DescribeReply reply;
  {
    const MutexLock lock(mutex_);
    reply.set_job_id(job_.config().job_id());
    reply.set_nnodes(job_.config().nnodes());
    reply.set_joined(job_.joined());
    const auto phase = job_.phase();
    reply.set_running(phase != JobState::Phase::kForming && phase != JobState::Phase::kEnded);
    const World* const world = job_.world();
    if (world) reply.set_run(world->run());
    if (phase == JobState::Phase::kFailingOver) *reply.mutable_waits_for() = world->id();
  }
  reply.set_hostname(hostname());
  reply.set_pid(getpid());
  return reply;
}

std::optional<Error> JobHost::check_caller(const wire::Caller& caller) const {
  if (caller.job_id() == job_.config().job_id()) return std::nullopt;
  return Error(ErrorCode::kUsage,
               "this is the store of job '" + job_.config().job_id() + "', not of job '" +
                   caller.job_id() + "'",
               "rank " + std::to_string(caller.rank()), "ranks are started by fleetrun");
}

std::optional<Error> JobHost::set(const wire::SetRequest& request) {
  std::optional<Error> error;
  run([&]() FLEET_REQUIRES(mutex_) {
    error = check_caller(request.caller());
    if (!error) error = store_.set(request.caller().generation(), request.key(), request.value());
  });
  return error;
}

KvState::Answer JobHost::add(const wire::AddRequest& request) {
  KvState::Answer answer;
  run([&]() FLEET_REQUIRES(mutex_) {
    answer.error = check_caller(request.caller());
    if (answer.error) return;
    answer = store_.add(request.caller().generation(), request.key(), request.amount());
  });
  return answer;
}

void JobHost::get(const wire::GetRequest& request, KvState::Ticket* ticket, KvState::Done done) {
  std::optional<Error> error;
  run([&]() FLEET_REQUIRES(mutex_) {
    error = check_caller(request.caller());
    if (error) return;
    // Clamped to a day, which keeps the sum with now() in range.
    const auto timeout = std::clamp<int64_t>(request.timeout_ms(), 0, 86'400'000);
    const auto now = job_.clock().at(Clock::now());
    const auto deadline = now + std::chrono::milliseconds(timeout);
    *ticket =
        store_.get(request.caller().generation(), request.key(), now, deadline, std::move(done));
  });
  if (error) done({{}, error});
}

bool JobHost::cancel(KvState::Ticket ticket) {
  const MutexLock lock(mutex_);
  return store_.cancel(ticket);
}

}  // namespace fleet
