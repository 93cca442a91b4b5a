#include "daemon/client_session.h"

#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "daemon/job_info.h"
#include "daemon/protocol.h"
#include "node/control_socket.h"
#include "transport/control_messages.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// Limits on bytes in flight to a client, and on how far a job may run ahead of its owner before it
// is paused.
constexpr size_t kMaxQueuedBytes = 1 << 20, kChunkBytes = 64 << 10, kMaxLagBytes = 128 << 10;
constexpr size_t kReplayBytes = 4 << 10;  // past output that an attaching client gets
constexpr int kLiveSeconds = 4;           // less than a client waits for a fleetd
constexpr int kMaxRequests = 200;         // most messages of a client between two heartbeats

int port_of(const std::string& endpoint) {
  return std::atoi(endpoint.c_str() + endpoint.rfind(':') + 1);
}

}  // namespace

ClientSession::ClientSession(EventLoop& loop, NodeJobs& jobs, std::shared_ptr<ServerStream> stream,
                             std::function<void()> on_end)
    : loop_(loop),
      jobs_(jobs),
      stream_(std::move(stream)),
      on_end_(std::move(on_end)),
      heartbeat_timer_(loop),
      failure_detector_(kHeartbeatTimes, std::chrono::steady_clock::now()) {
  stream_->begin({[this](const wire::ClientMessage& message) { on_message(message); },
                  [this] { send_updates(); }, [this](const grpc::Status&) { on_closed(); }});
  start_heartbeat_timer();
}

ClientSession::~ClientSession() {
  if (watch_) jobs_.unwatch(*watch_);
  if (log_watch_) jobs_.files().unwatch(*log_watch_);
}

void ClientSession::start_heartbeat_timer() {
  heartbeat_timer_.after(kHeartbeatTimes.heartbeat_interval, [this] {
    if (role_ == Role::kOwner || role_ == Role::kNone) {
      if (!failure_detector_.poll(std::chrono::steady_clock::now())) return stream_->cancel();
    }
    request_count_ = 0;
    // A client that is not reading gets queued messages later anyway, so skip the heartbeat.
    if (stream_->queued_bytes() == 0) {
      stream_->send(envelope(&wire::FleetdMessage::mutable_heartbeat));
    }
    start_heartbeat_timer();
  });
}

void ClientSession::on_message(const wire::ClientMessage& message) {
  failure_detector_.received(std::chrono::steady_clock::now());
  if (sent_end_) return;  // the message crossed the end of the job
  try {
    if (++request_count_ > kMaxRequests)
      throw Error(ErrorCode::kUsage, "the client sends messages too fast");
    handle(message);
  } catch (const Error& error) {
    refuse(error);
  }
}

void ClientSession::handle(const wire::ClientMessage& message) {
  const bool first = role_ == Role::kNone, owner = role_ == Role::kOwner;
  if (first) check_version(message);
  validate(message);
  switch (message.kind_case()) {
    case wire::ClientMessage::kPrepare:
      if (first) return prepare(message.prepare());
      break;
    case wire::ClientMessage::kAttach:
      if (first) return attach(message.attach().job_id());
      break;
    case wire::ClientMessage::kQuery:
      if (first) return query(message.query().job_id());
      break;
    case wire::ClientMessage::kStopNamed:
      if (first) return stop_named(message.stop_named());
      break;
    case wire::ClientMessage::kReadLog:
      if (first) return read_log(message.read_log());
      break;
    case wire::ClientMessage::kLive:
      if (first) return query_live(message.live());
      break;
    case wire::ClientMessage::kLaunch:
      if (!owner || launched_) break;
      launched_ = true;
      return jobs_.launch(number_, message.launch().rdzv_port());
    case wire::ClientMessage::kStop:
      if (owner || role_ == Role::kAttached) return jobs_.stop(number_, message.stop());
      break;
    case wire::ClientMessage::kSignal:
      if (owner || role_ == Role::kAttached) return signal(message.signal().number());
      break;
    case wire::ClientMessage::kDetach:
      if (owner) return detach();
      break;
    case wire::ClientMessage::kHeartbeat:
      return;
    case wire::ClientMessage::KIND_NOT_SET:
      break;
  }
  throw Error(ErrorCode::kUsage, "unexpected message in this state");
}

void ClientSession::signal(int number) {
  if (number == SIGUSR1 || number == SIGUSR2) jobs_.signal(number_, number);
}

void ClientSession::detach() {
  detached_ = true;
  jobs_.detach(number_);
  stream_->send(envelope(&wire::FleetdMessage::mutable_detached));
  stream_->close();
}

void ClientSession::refuse(const Error& error) {
  stream_->send(envelope(&wire::FleetdMessage::mutable_refused, to_wire(error)));
  stream_->close();
}

void ClientSession::on_owner_lost(const JobInfo& job) {
  if (job.phase() != JobInfo::PREPARED) {
    spdlog::warn("the job of pid {} has lost the client that owns it: stopping it",
                 job.record().pid());
  }
  jobs_.stop(number_, stop_request(SIGHUP));
}

void ClientSession::on_closed() {
  heartbeat_timer_.cancel();
  if (role_ == Role::kOwner && !detached_ && !sent_end_) {
    const JobInfo* job = jobs_.find(number_);
    if (job && job->phase() != JobInfo::ENDED) {
      jobs_.pause_output(number_, false);
      // A job that is already stopping keeps its grace time: this is not a second request.
      if (job->phase() != JobInfo::STOPPING) on_owner_lost(*job);
    }
  }
  on_end_();  // deletes this
}

void ClientSession::prepare(const wire::JobRequest& request) {
  subscribe(jobs_.prepare(request), Role::kOwner);
  stream_->send(envelope(&wire::FleetdMessage::mutable_prepared));
}

const JobInfo& ClientSession::job_named(const std::string& job_id) const {
  const JobInfo* job = jobs_.find_by_job_id(job_id);
  if (job) return *job;
  throw Error(ErrorCode::kNotFound, "no such job on this node", "job " + shown_name(job_id),
              "fleetrun ls lists the jobs");
}

void ClientSession::subscribe(int number, Role role) {
  role_ = role;
  number_ = number;
  watch_ = jobs_.watch(number, [this] { send_updates(); });
}

void ClientSession::attach(const std::string& job_id) {
  const int number = job_named(job_id).number();
  const ConsoleLog& console = jobs_.console(number);
  console_position_ =
      console.end() - std::min<uint64_t>(console.end() - console.begin(), kReplayBytes);
  subscribe(number, Role::kAttached);
  send_updates();
}

void ClientSession::query(const std::string& job_id) {
  for (const JobInfo& job : jobs_.all()) {
    if (!job_id.empty() && job.record().job_id() != job_id) continue;
    // One message per job, because all jobs may exceed the limit of one message.
    wire::FleetdMessage event;
    *event.mutable_jobs()->add_jobs() = job;
    stream_->send(std::move(event));
  }
  stream_->send(envelope(&wire::FleetdMessage::mutable_jobs));
  stream_->close();
}

void ClientSession::stop_named(const wire::StopNamedJob& request) {
  subscribe(job_named(request.job_id()).number(), Role::kStopper);
  jobs_.stop(number_, request.how());
  send_updates();
}

void ClientSession::read_log(const wire::ReadLog& request) {
  const JobInfo& job = job_named(request.job_id());
  follow_ = request.follow();
  if (request.rank() >= 0) log_request_ = request;
  if (log_request_ && !open_log(job) && !follow_) {
    throw Error(ErrorCode::kNotFound, "rank " + std::to_string(request.rank()) + " is not here",
                "job " + request.job_id());
  }
  subscribe(job.number(), Role::kReader);
  send_updates();
}

// Its launcher knows.
void ClientSession::query_live(const wire::QueryLive& query) {
  const std::string& job_id = query.job_id();
  const JobInfo& job = job_named(job_id);
  if (job.phase() != JobInfo::RUNNING && job.phase() != JobInfo::STOPPING) {
    throw Error(ErrorCode::kNotFound, std::string("it does not run: ") + state_of(job),
                "job " + shown_name(job_id));
  }
  role_ = Role::kObserver;
  wire::ControlRequest request;
  request.mutable_live()->set_history(query.history());
  send_control_request(loop_, job.record().pid(), request, kLiveSeconds,
                       [this, alive = std::weak_ptr(alive_)](const wire::ControlReply& reply) {
                         if (alive.expired()) return;
                         wire::FleetdMessage event;
                         if (reply.has_failure()) {
                           *event.mutable_refused() = reply.failure();
                         } else {
                           *event.mutable_live() = reply.live();
                         }
                         stream_->send(std::move(event));
                         stream_->close();
                       });
}

void ClientSession::send_updates() {
  if (role_ == Role::kNone || role_ == Role::kObserver || sent_end_) return;
  const JobInfo* job = jobs_.find(number_);
  if (!job) {
    if (ended_) return send_end(*ended_);  // the rest of its output has been dropped
    sent_end_ = true;
    return stream_->close();
  }
  if (job->phase() == JobInfo::ENDED && !ended_) ended_ = *job;
  if (role_ == Role::kOwner) send_progress(*job);
  try {
    const bool all_sent =
        role_ == Role::kStopper || (log_request_ ? send_log(*job) : send_output());
    if (all_sent && (job->phase() == JobInfo::ENDED || !follow_)) send_end(*job);
  } catch (const Error& error) {  // a log could not be read
    sent_end_ = true;
    refuse(error);
  }
}

void ClientSession::send_progress(const JobInfo& job) {
  if (!launched_ || job.phase() == JobInfo::ENDED) return;
  if (!announced_hosting_ && job.node_index() == 0 && !job.record().rendezvous().empty()) {
    announced_hosting_ = true;
    wire::FleetdMessage event;
    event.mutable_hosting()->set_rdzv_port(port_of(job.record().rendezvous()));
    stream_->send(std::move(event));
  }
  if (job.record().generation() > announced_generation_ && job.phase() == JobInfo::RUNNING) {
    announced_generation_ = job.record().generation();
    wire::FleetdMessage event;
    event.mutable_running()->set_nnodes(job.record().nnodes());
    stream_->send(std::move(event));
  }
}

bool ClientSession::send_output() {
  const ConsoleLog& console = jobs_.console(number_);
  while (stream_->queued_bytes() < kMaxQueuedBytes) {
    const ConsoleLog::Chunk chunk = console.next(&console_position_, kChunkBytes);
    if (chunk.text.empty()) break;
    wire::FleetdMessage event;
    event.mutable_output()->set_error(chunk.error);
    event.mutable_output()->set_text(chunk.text);
    stream_->send(std::move(event));
  }
  if (role_ == Role::kOwner)
    jobs_.pause_output(number_, console.end() - console_position_ > kMaxLagBytes);
  return console_position_ == console.end();
}

bool ClientSession::open_log(const JobInfo& job) {
  const auto& ranks = job.record().ranks();
  const auto rank = std::find_if(ranks.begin(), ranks.end(), [&](const JobRecord::Rank& each) {
    return each.rank() == log_request_->rank() && each.server() == log_request_->server();
  });
  if (rank == ranks.end() || rank->log_path() == log_path_) return false;
  // For a rank that moved here later, start with its output from then on.
  log_.emplace(rank->log_path(), role_ == Role::kReader);
  log_path_ = rank->log_path();
  if (log_watch_) jobs_.files().unwatch(*log_watch_);
  log_watch_.reset();
  if (follow_) log_watch_ = jobs_.files().watch_file(log_path_, [this] { send_updates(); });
  return true;
}

bool ClientSession::send_log(const JobInfo& job) {
  while (send_open_log()) {
    if (!follow_ || !open_log(job)) return true;
  }
  return false;
}

bool ClientSession::send_open_log() {
  while (stream_->queued_bytes() < kMaxQueuedBytes) {
    const std::string chunk = log_ ? log_->next(kChunkBytes) : std::string();
    if (chunk.empty()) return true;
    wire::FleetdMessage event;
    event.mutable_output()->set_text(chunk);
    stream_->send(std::move(event));
  }
  return false;
}

void ClientSession::send_end(const JobInfo& job) {
  sent_end_ = true;
  wire::FleetdMessage event;
  event.mutable_ended()->set_code(job.phase() == JobInfo::ENDED ? job.code() : 0);
  if (job.record().has_verdict()) {
    *event.mutable_ended()->mutable_verdict() = job.record().verdict();
  }
  stream_->send(std::move(event));
  stream_->close();
}

}  // namespace fleet
