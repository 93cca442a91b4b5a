#include "daemon/conversation.h"

#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "daemon/protocol.h"

namespace fleet {
namespace {

// Limits on bytes in flight to a client, and on how far a job may run ahead of its owner before it
// is paused.
constexpr size_t kOnTheWay = 1 << 20, kPiece = 64 << 10, kBehind = 128 << 10;
constexpr size_t kContext = 4 << 10;  // past output that an attaching client gets
constexpr int kAsks = 200;            // most messages of a client between two heartbeats

bool is_stop(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

int port_of(const std::string& endpoint) {
  return std::atoi(endpoint.c_str() + endpoint.rfind(':') + 1);
}

}  // namespace

Conversation::Conversation(boost::asio::io_context& loop, NodeJobs& jobs,
                           std::shared_ptr<ServerTalk> talk, std::function<void()> over)
    : jobs_(jobs),
      talk_(std::move(talk)),
      over_(std::move(over)),
      beat_(loop),
      pulse_(std::chrono::steady_clock::now()) {
  talk_->begin({[this](const Ask& ask) { on_ask(ask); }, [this] { look(); },
                [this](const grpc::Status&) { on_closed(); }});
  listen_for_life();
}

Conversation::~Conversation() {
  if (watch_) jobs_.forget(*watch_);
  if (log_watch_) jobs_.files().forget(*log_watch_);
}

void Conversation::listen_for_life() {
  beat_.expires_after(Pulse::kBeat);
  beat_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    if (part_ == Part::kOwner || part_ == Part::kNobody) {
      if (!pulse_.look(std::chrono::steady_clock::now())) return talk_->abandon();
    }
    asks_ = 0;
    // A client that is not reading gets queued messages later anyway, so skip the heartbeat.
    if (talk_->waiting() == 0) {
      Tell tell;
      tell.mutable_beat();
      talk_->send(std::move(tell));
    }
    listen_for_life();
  });
}

void Conversation::on_ask(const Ask& ask) {
  pulse_.heard(std::chrono::steady_clock::now());
  if (told_end_) return;  // the message crossed the end of the job
  try {
    if (++asks_ > kAsks) throw Error(ErrorCode::kUsage, "the client sends messages too fast");
    answer(ask);
  } catch (const Error& error) {
    talk_->send(refusal(error));
    talk_->end();
  }
}

void Conversation::answer(const Ask& ask) {
  const bool first = part_ == Part::kNobody;
  if (ask.has_prepare() && first) return prepare(ask.prepare());
  if (ask.has_attach() && first) return attach(ask.attach().job_id());
  if (ask.has_query() && first) return query(ask.query().job_id());
  if (ask.has_stop() && first) return stop(ask.stop());
  if (ask.has_read_log() && first) return read_log(ask.read_log());
  if (ask.has_launch() && part_ == Part::kOwner && !launched_) {
    launched_ = true;
    return jobs_.launch(number_, ask.launch().rdzv_port());
  }
  if (ask.has_signal() && (part_ == Part::kOwner || part_ == Part::kAttached)) {
    const int number = ask.signal().number();
    if (is_stop(number)) {
      jobs_.stop(number_, number);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
      jobs_.signal(number_, number);
    }
    return;
  }
  if (ask.has_detach() && part_ == Part::kOwner) {
    detached_ = true;
    jobs_.detach(number_);
    Tell tell;
    tell.mutable_detached();
    talk_->send(std::move(tell));
    return talk_->end();
  }
  if (!ask.has_beat()) throw Error(ErrorCode::kUsage, "unexpected message in this state");
}

void Conversation::hang_up(const JobInfo& job) {
  if (job.phase != JobPhase::kPrepared) {
    spdlog::warn("the job of pid {} has lost the client that owns it: stopping it", job.record.pid);
  }
  jobs_.stop(number_, SIGHUP);
}

void Conversation::on_closed() {
  beat_.cancel();
  if (part_ == Part::kOwner && !detached_ && !told_end_) {
    const JobInfo* job = jobs_.find(number_);
    if (job && job->phase != JobPhase::kEnded) {
      jobs_.hold_output(number_, false);
      // A job that is already stopping keeps its grace time: this is not a second request.
      if (job->phase != JobPhase::kStopping) hang_up(*job);
    }
  }
  over_();  // deletes this
}

void Conversation::prepare(const daemon_wire::Prepare& wish) {
  follow(jobs_.prepare(request_from(wish)), Part::kOwner);
  Tell tell;
  tell.mutable_prepared();
  talk_->send(std::move(tell));
}

const JobInfo& Conversation::known(const std::string& job_id) const {
  const JobInfo* job = jobs_.named(job_id);
  if (job) return *job;
  throw Error(ErrorCode::kNotFound, "no such job on this node", "job " + shown_name(job_id),
              "fleetrun ls lists the jobs");
}

void Conversation::follow(int number, Part part) {
  part_ = part;
  number_ = number;
  watch_ = jobs_.watch(number, [this] { look(); });
}

void Conversation::attach(const std::string& job_id) {
  const int number = known(job_id).number;
  const ConsoleLog& console = jobs_.console(number);
  shown_ = console.end() - std::min<uint64_t>(console.end() - console.begin(), kContext);
  follow(number, Part::kAttached);
  look();
}

void Conversation::query(const std::string& job_id) {
  for (const JobInfo& job : jobs_.all()) {
    if (!job_id.empty() && job.record.job_id != job_id) continue;
    Tell tell;  // one message per job, because all jobs may exceed the limit of one message
    tell.mutable_jobs()->add_jobs(job_info_json(job));
    talk_->send(std::move(tell));
  }
  Tell last;
  last.mutable_jobs();
  talk_->send(std::move(last));
  talk_->end();
}

void Conversation::stop(const daemon_wire::Stop& order) {
  follow(known(order.job_id()).number, Part::kStopper);
  jobs_.stop(number_, SIGTERM);
  // A second stop signal kills. Use another signal, because two equal ones may merge.
  if (order.kill()) jobs_.stop(number_, SIGINT);
  look();
}

void Conversation::read_log(const daemon_wire::ReadLog& wish) {
  const JobInfo& job = known(wish.job_id());
  follows_ = wish.follow();
  if (wish.rank() >= 0) rank_ = wish;
  if (rank_ && !open_log(job) && !follows_) {
    throw Error(ErrorCode::kNotFound, "rank " + std::to_string(wish.rank()) + " is not here",
                "job " + wish.job_id());
  }
  follow(job.number, Part::kReader);
  look();
}

void Conversation::look() {
  if (part_ == Part::kNobody || told_end_) return;
  const JobInfo* job = jobs_.find(number_);
  if (!job) {
    if (ended_) return tell_end(*ended_);  // the rest of its output has been dropped
    told_end_ = true;
    return talk_->end();
  }
  if (job->phase == JobPhase::kEnded && !ended_) ended_ = *job;
  if (part_ == Part::kOwner) tell_progress(*job);
  try {
    const bool all_told = part_ == Part::kStopper || (rank_ ? tell_log(*job) : tell_output());
    if (all_told && (job->phase == JobPhase::kEnded || !follows_)) tell_end(*job);
  } catch (const Error& error) {  // a log could not be read
    told_end_ = true;
    talk_->send(refusal(error));
    talk_->end();
  }
}

void Conversation::tell_progress(const JobInfo& job) {
  if (!launched_ || job.phase == JobPhase::kEnded) return;
  if (!told_hosting_ && job.place == 0 && !job.record.rendezvous.empty()) {
    told_hosting_ = true;
    Tell tell;
    tell.mutable_hosting()->set_rdzv_port(port_of(job.record.rendezvous));
    talk_->send(std::move(tell));
  }
  if (job.record.epoch > told_epoch_ && job.phase == JobPhase::kRunning) {
    told_epoch_ = job.record.epoch;
    Tell tell;
    tell.mutable_running()->set_nnodes(job.record.nnodes);
    talk_->send(std::move(tell));
  }
}

bool Conversation::tell_output() {
  const ConsoleLog& console = jobs_.console(number_);
  while (talk_->waiting() < kOnTheWay) {
    const ConsoleLog::Piece piece = console.next(&shown_, kPiece);
    if (piece.text.empty()) break;
    Tell tell;
    tell.mutable_output()->set_error(piece.error);
    tell.mutable_output()->set_text(piece.text);
    talk_->send(std::move(tell));
  }
  if (part_ == Part::kOwner) jobs_.hold_output(number_, console.end() - shown_ > kBehind);
  return shown_ == console.end();
}

bool Conversation::open_log(const JobInfo& job) {
  const auto& ranks = job.record.ranks;
  const auto rank = std::find_if(ranks.begin(), ranks.end(), [&](const JobRecord::Rank& each) {
    return each.rank == rank_->rank() && each.server == rank_->server();
  });
  if (rank == ranks.end() || rank->log_path == log_path_) return false;
  // For a rank that moved here later, start with its output from then on.
  log_.emplace(rank->log_path, part_ == Part::kReader);
  log_path_ = rank->log_path;
  if (log_watch_) jobs_.files().forget(*log_watch_);
  log_watch_.reset();
  if (follows_) log_watch_ = jobs_.files().watch_file(log_path_, [this] { look(); });
  return true;
}

bool Conversation::tell_log(const JobInfo& job) {
  while (tell_open_log()) {
    if (!follows_ || !open_log(job)) return true;
  }
  return false;
}

bool Conversation::tell_open_log() {
  while (talk_->waiting() < kOnTheWay) {
    const std::string piece = log_ ? log_->next(kPiece) : std::string();
    if (piece.empty()) return true;
    Tell tell;
    tell.mutable_output()->set_text(piece);
    talk_->send(std::move(tell));
  }
  return false;
}

void Conversation::tell_end(const JobInfo& job) {
  told_end_ = true;
  Tell tell;
  tell.mutable_ended()->set_code(job.phase == JobPhase::kEnded ? job.code : 0);
  tell.mutable_ended()->set_verdict(job.verdict);
  talk_->send(std::move(tell));
  talk_->end();
}

}  // namespace fleet
