#include "viewing/web/job_site.h"

#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "node/control_socket.h"
#include "node/log_reader.h"
#include "transport/control_messages.h"
#include "viewing/live_view.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

std::string dump(const Json& json) { return json.dump_lossy(); }

std::shared_ptr<const std::string> event_of(std::string_view event, std::string_view data) {
  return std::make_shared<const std::string>(server_sent_event(event, data));
}

std::optional<WatchedLog> log_of(const HttpRequest& request) {
  WatchedLog log{.server = query_value(request, "server") == "1"};
  const std::string text = query_value(request, "rank");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), log.rank);
  if (error != std::errc() || end != text.data() + text.size() || log.rank < 0) return std::nullopt;
  return log;
}

HttpServer::Response stream_response(std::function<void(std::shared_ptr<HttpStream>)> on_stream) {
  return {.type = "text/event-stream", .on_stream = std::move(on_stream)};
}

constexpr int kAnswerSeconds = 5;

constexpr std::chrono::milliseconds kInterval{300};
constexpr size_t kChunk = 64 << 10;

std::string log_event_of(const std::string& text, bool error) {
  const Json json = {{"error", error}, {"text", text}};
  return server_sent_event("lines", json.dump_lossy());
}

// Its timer keeps it alive until the browser has gone.
class LocalLogStream : public std::enable_shared_from_this<LocalLogStream> {
 public:
  LocalLogStream(EventLoop& loop, std::shared_ptr<HttpStream> stream)
      : timer_(loop), stream_(std::move(stream)) {}

  void add(const std::string& path, const LogPosition& begin, const LogPosition& end, bool error) {
    const LogPosition tail = tail_of_log(path, begin, end, kPastLogBytes);
    const bool cut = tail.at() > 0 && (tail.at() != begin.at() || tail.file() != begin.file());
    logs_.push_back(std::make_unique<Log>(path, cut, error));
    logs_.back()->reader.begin_at(tail);
    logs_.back()->reader.end_at(end);
  }

  void run() {
    if (!stream_->open()) return;
    try {
      for (const auto& log : logs_) send_new(log.get());
    } catch (const Error& error) {  // it cannot be read
      stream_->send(
          std::make_shared<const std::string>(log_event_of(error.failure() + "\n", true)));
      return stream_->close();
    }
    timer_.after(kInterval, [self = shared_from_this()] { self->run(); });
  }

 private:
  struct Log {
    Log(const std::string& path, bool cut, bool error) : reader(path), lines(cut, error) {}
    LogReader reader;
    LogLines lines;
  };

  // Reads on only when the browser has read.
  void send_new(Log* log) {
    while (stream_->open() && stream_->queued() < kChunk) {
      const std::string bytes = log->reader.next(kChunk);
      if (bytes.empty()) return;
      stream_->send(std::make_shared<const std::string>(log->lines.add(bytes)));
    }
  }

  LoopTimer timer_;
  const std::shared_ptr<HttpStream> stream_;
  std::vector<std::unique_ptr<Log>> logs_;
};

}  // namespace

EventStreams::~EventStreams() {
  for (const auto& stream : streams_) stream->close();
}

void EventStreams::send(std::string_view event, std::string_view data) {
  if (!any()) return;
  const auto bytes = event_of(event, data);
  for (const auto& stream : streams_) stream->send(bytes);
}

bool EventStreams::any() {
  std::erase_if(streams_, [](const auto& stream) { return !stream->open(); });
  return !streams_.empty();
}

JobSite::JobSite(EventLoop& loop, std::unique_ptr<WatchedJob> job,
                 std::chrono::seconds idle_interval)
    : loop_(loop), job_(std::move(job)), idle_interval_(idle_interval), timer_(loop) {}

void JobSite::look() {
  waiting_ = false;
  if (outcome_) return;
  job_->live(want_history_, [weak = weak_from_this()](const WatchedJob::Answer& answer) {
    if (const auto self = weak.lock()) self->on_answer(answer);
  });
}

void JobSite::look_again() {
  waiting_ = true;
  const bool watched = streams_.any();
  want_history_ = want_history_ || !watched;
  const bool soon = watched || last_frame_.empty();  // it may be about to start
  timer_.after(soon ? std::chrono::seconds(1) : idle_interval_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

void JobSite::tidy() {
  if (outcome_ && !streams_.any()) history_.forget_ranks();
}

std::string JobSite::history_now() const {
  return history_event(history_.snapshot(std::chrono::steady_clock::now()), unix_seconds());
}

void JobSite::on_answer(const WatchedJob::Answer& answer) {
  if (answer.report) {
    const auto now = std::chrono::steady_clock::now();
    if (answer.report->has_history()) {
      history_.take(answer.report->history(), now);
      want_history_ = false;
    }
    history_.add(*answer.report, now);
    last_frame_ = live_json(*answer.report, "rank", unix_seconds());
    last_frame_.pop_back();  // the newline
    if (answer.report->has_history() && streams_.any()) streams_.send("history", history_now());
    streams_.send("frame", last_frame_);
    return look_again();
  }
  const Error failure = *answer.failure;
  if (failure.code() != ErrorCode::kNotFound) {
    streams_.send("silence", dump({{"text", failure.failure()}}));
    return look_again();
  }
  job_->outcome([weak = weak_from_this(), failure](const std::optional<JobOutcome>& outcome) {
    if (const auto self = weak.lock()) self->on_outcome(failure, outcome);
  });
}

void JobSite::on_outcome(const Error& failure, const std::optional<JobOutcome>& outcome) {
  if (!outcome) {
    streams_.send("silence", dump({{"text", failure.failure()}}));
    return look_again();
  }
  outcome_ = outcome;
  streams_.send("ended", outcome_event(*outcome_));
  on_end(*outcome_);
}

// Earlier events.
void JobSite::greet(const std::shared_ptr<HttpStream>& stream) {
  stream->send(event_of("history", history_now()));
  if (!last_frame_.empty()) stream->send(event_of("frame", last_frame_));
  if (outcome_) stream->send(event_of("ended", outcome_event(*outcome_)));
  streams_.add(stream);
  if (!waiting_) return;  // an answer is on its way
  timer_.cancel();
  look();
}

HttpServer::Response JobSite::respond(const std::string& path, const HttpRequest& request) {
  if (auto file = page_file(path)) return *std::move(file);
  if (path == "events") {
    return stream_response([weak = weak_from_this()](const std::shared_ptr<HttpStream>& stream) {
      if (const auto self = weak.lock()) self->greet(stream);
    });
  }
  if (path != "log") return not_found();
  const auto log = log_of(request);
  if (!log) return {.status = 400, .body = "which rank? log?rank=0\n"};
  return stream_response(
      [weak = weak_from_this(), log = *log](const std::shared_ptr<HttpStream>& stream) {
        const auto self = weak.lock();
        if (!self) return stream->close();
        try {
          self->job_->log(log, stream);
        } catch (const Error& error) {
          stream->send(event_of("refused", dump({{"text", error.what()}})));
        }
      });
}

std::optional<HttpServer::Response> page_file(const std::string& path) {
  if (path.empty()) {
    return HttpServer::Response{.type = "text/html; charset=utf-8",
                                .body = std::string(page_html())};
  }
  if (path == "page.css") {
    return HttpServer::Response{.type = "text/css; charset=utf-8", .body = std::string(page_css())};
  }
  if (path == "page.js") {
    return HttpServer::Response{.type = "text/javascript; charset=utf-8",
                                .body = std::string(page_js())};
  }
  return std::nullopt;
}

HttpServer::Response not_found() { return {.status = 404, .body = "no such page\n"}; }

void ask_launcher(EventLoop& loop, pid_t pid, bool history,
                  std::function<void(WatchedJob::Answer)> done) {
  wire::ControlRequest request;
  request.mutable_live()->set_history(history);
  const auto shared = std::make_shared<std::function<void(WatchedJob::Answer)>>(std::move(done));
  try {
    send_control_request(loop, pid, request, kAnswerSeconds,
                         [shared](const wire::ControlReply& reply) {
                           if (reply.has_failure()) {
                             return (*shared)({.failure = from_wire(reply.failure())});
                           }
                           (*shared)({.report = reply.live()});
                         });
  } catch (const Error& error) {
    (*shared)({.failure = error});
  }
}

std::string LogLines::add(std::string_view bytes) {
  const std::string safe = filter_.pass(bytes);
  lines_.add(safe);
  std::string text;
  for (std::string_view line; lines_.next(&line);) {
    if (std::exchange(cut_, false)) continue;
    if (!line.ends_with('\r')) text += line;
  }
  return text.empty() ? "" : log_event_of(text, error_);
}

void stream_local_log(EventLoop& loop, const JobRecord::Rank& rank,
                      std::shared_ptr<HttpStream> stream) {
  if (rank.log_path().empty() && rank.error_log().empty()) {
    throw Error(ErrorCode::kNotFound, "its output is not kept",
                "rank " + std::to_string(rank.rank()));
  }
  const auto log = std::make_shared<LocalLogStream>(loop, std::move(stream));
  if (!rank.log_path().empty()) {
    log->add(rank.log_path(), rank.log_begin(), rank.log_end(), false);
  }
  if (!rank.error_log().empty()) {
    log->add(rank.error_log(), rank.error_begin(), rank.error_end(), true);
  }
  log->run();
}

}  // namespace fleet
