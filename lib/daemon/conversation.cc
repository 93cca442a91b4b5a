#include "daemon/conversation.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "daemon/protocol.h"

namespace fleet {
namespace {

// So much may be on its way to a client; and a job that is so far ahead of its owner waits.
constexpr size_t kOnTheWay = 1 << 20, kPiece = 64 << 10, kBehind = 128 << 10;
constexpr size_t kContext = 4 << 10;  // what one who attaches sees of the past

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
  if (file_watch_) jobs_.files().forget(*file_watch_);
}

void Conversation::listen_for_life() {
  beat_.expires_after(Pulse::kBeat);
  beat_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
    if (error || alive.expired()) return;
    if (part_ == Part::kOwner || part_ == Part::kNobody) {
      if (!pulse_.look(std::chrono::steady_clock::now())) return talk_->abandon();
    }
    Tell tell;
    tell.mutable_beat();
    talk_->send(std::move(tell));
    listen_for_life();
  });
}

void Conversation::on_ask(const Ask& ask) {
  pulse_.heard(std::chrono::steady_clock::now());
  try {
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
    return jobs_.launch(job_id_, ask.launch().rdzv_port());
  }
  if (ask.has_signal() && (part_ == Part::kOwner || part_ == Part::kAttached)) {
    const int number = ask.signal().number();
    if (is_stop(number)) {
      jobs_.stop(job_id_, number);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
      jobs_.signal(job_id_, number);
    }
    return;
  }
  if (ask.has_detach() && part_ == Part::kOwner) {
    detached_ = true;
    jobs_.detach(job_id_);
    Tell tell;
    tell.mutable_detached();
    talk_->send(std::move(tell));
    return talk_->end();
  }
  if (!ask.has_beat()) throw Error(ErrorCode::kUsage, "a message came that makes no sense here");
}

void Conversation::on_closed() {
  beat_.cancel();
  if (part_ == Part::kOwner && !detached_ && !told_end_) {
    const JobInfo* job = jobs_.find(job_id_);
    if (job && job->phase != JobPhase::kEnded) {
      if (job->phase != JobPhase::kPrepared) {
        spdlog::warn("job '{}' has lost the client that it belongs to: stopping it", job_id_);
      }
      jobs_.hold_output(job_id_, false);
      jobs_.stop(job_id_, SIGHUP);
    }
  }
  over_();  // deletes this
}

void Conversation::prepare(const daemon_wire::Prepare& wish) {
  JobRequest request = request_from(wish);
  const std::string job_id = request.job_id;
  jobs_.prepare(std::move(request));
  follow(job_id, Part::kOwner);
  Tell tell;
  tell.mutable_prepared();
  talk_->send(std::move(tell));
}

const JobInfo& Conversation::known(const std::string& job_id) const {
  const JobInfo* job = jobs_.find(job_id);
  if (job) return *job;
  throw Error(ErrorCode::kNotFound, "there is no such job here", "job " + job_id,
              "fleetrun ls shows those that there are");
}

void Conversation::follow(const std::string& job_id, Part part) {
  part_ = part;
  job_id_ = job_id;
  watch_ = jobs_.watch(job_id, [this] { look(); });
}

void Conversation::attach(const std::string& job_id) {
  known(job_id);
  const ConsoleLog& console = jobs_.console(job_id);
  shown_ = console.end() - std::min<uint64_t>(console.end() - console.begin(), kContext);
  follow(job_id, Part::kAttached);
  look();
}

void Conversation::query(const std::string& job_id) {
  Tell tell;
  for (const JobInfo& job : jobs_.all()) {
    if (job_id.empty() || job.record.job_id == job_id)
      tell.mutable_jobs()->add_jobs(job_info_json(job));
  }
  tell.mutable_jobs();
  talk_->send(std::move(tell));
  talk_->end();
}

void Conversation::stop(const daemon_wire::Stop& order) {
  known(order.job_id());
  follow(order.job_id(), Part::kStopper);
  jobs_.stop(job_id_, SIGTERM);
  // A second one kills; two of the same might be taken for one.
  if (order.kill()) jobs_.stop(job_id_, SIGINT);
  look();
}

void Conversation::read_log(const daemon_wire::ReadLog& wish) {
  const JobInfo& job = known(wish.job_id());
  follows_ = wish.follow();
  if (wish.rank() >= 0) {
    const auto& ranks = job.record.ranks;
    const auto rank = std::find_if(ranks.begin(), ranks.end(), [&](const JobRecord::Rank& each) {
      return each.rank == wish.rank() && each.server == wish.server();
    });
    if (rank == ranks.end()) {
      throw Error(ErrorCode::kNotFound, "rank " + std::to_string(wish.rank()) + " is not here",
                  "job " + wish.job_id());
    }
    file_ = UniqueFd(::open(rank->log_path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) throw_errno("the log cannot be read", rank->log_path);
    if (follows_) file_watch_ = jobs_.files().watch_file(rank->log_path, [this] { look(); });
  }
  follow(wish.job_id(), Part::kReader);
  look();
}

void Conversation::look() {
  if (part_ == Part::kNobody || told_end_) return;
  const JobInfo* job = jobs_.find(job_id_);
  if (!job) {
    told_end_ = true;
    return talk_->end();
  }
  if (part_ == Part::kOwner) tell_progress(*job);
  const bool all_told = part_ == Part::kStopper || (file_ ? tell_file() : tell_output());
  if (all_told && (job->phase == JobPhase::kEnded || !follows_)) tell_end(*job);
}

void Conversation::tell_progress(const JobInfo& job) {
  if (!launched_ || job.phase == JobPhase::kEnded) return;
  if (!told_hosting_ && job.record.node_rank == 0 && !job.record.rendezvous.empty()) {
    told_hosting_ = true;
    Tell tell;
    tell.mutable_hosting()->set_rdzv_port(port_of(job.record.rendezvous));
    talk_->send(std::move(tell));
  }
  if (!told_running_ && job.phase == JobPhase::kRunning) {
    told_running_ = true;
    Tell tell;
    tell.mutable_running();
    talk_->send(std::move(tell));
  }
}

bool Conversation::tell_output() {
  const ConsoleLog& console = jobs_.console(job_id_);
  while (talk_->waiting() < kOnTheWay) {
    const ConsoleLog::Piece piece = console.next(&shown_, kPiece);
    if (piece.text.empty()) break;
    Tell tell;
    tell.mutable_output()->set_error(piece.error);
    tell.mutable_output()->set_text(piece.text);
    talk_->send(std::move(tell));
  }
  if (part_ == Part::kOwner) jobs_.hold_output(job_id_, console.end() - shown_ > kBehind);
  return shown_ == console.end();
}

bool Conversation::tell_file() {
  std::string buffer(kPiece, '\0');
  while (talk_->waiting() < kOnTheWay) {
    const ssize_t size = ::read(file_.get(), buffer.data(), buffer.size());
    if (size <= 0) return true;
    Tell tell;
    tell.mutable_output()->set_text(buffer.data(), static_cast<size_t>(size));
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
