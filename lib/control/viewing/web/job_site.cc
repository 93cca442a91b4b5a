#include "viewing/web/job_site.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "viewing/live_view.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

std::string dump(const Json& json) { return json.dump_lossy(); }

std::shared_ptr<const std::string> event_of(std::string_view event, std::string_view data) {
  return std::make_shared<const std::string>(server_sent_event(event, data));
}

std::string json_of(const JobOutcome& outcome) {
  return dump({{"state", outcome.state}, {"text", outcome.text}});
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

JobSite::JobSite(EventLoop& loop, std::unique_ptr<WatchedJob> job, bool always)
    : loop_(loop), job_(std::move(job)), always_(always), timer_(loop) {}

void JobSite::look() {
  looking_ = true;
  if (outcome_) return;
  idle_seconds_ = streams_.any() ? 0 : idle_seconds_ + 1;
  if (!always_ && idle_seconds_ > kIdleSeconds) {
    looking_ = false;
    return;
  }
  job_->live([weak = weak_from_this()](const WatchedJob::Answer& answer) {
    if (const auto self = weak.lock()) self->on_answer(answer);
  });
}

void JobSite::look_again() {
  timer_.after(std::chrono::seconds(1), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look();
  });
}

void JobSite::on_answer(const WatchedJob::Answer& answer) {
  if (answer.report) {
    const double now = unix_seconds();
    history_.add(*answer.report, now);
    last_frame_ = live_json(*answer.report, "rank", now);
    last_frame_.pop_back();  // the newline
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
  streams_.send("ended", json_of(*outcome_));
  on_end(*outcome_);
}

// Earlier events.
void JobSite::greet(const std::shared_ptr<HttpStream>& stream) {
  stream->send(event_of("history", history_.json()));
  if (!last_frame_.empty()) stream->send(event_of("frame", last_frame_));
  if (outcome_) stream->send(event_of("ended", json_of(*outcome_)));
  streams_.add(stream);
  idle_seconds_ = 0;
  if (!looking_) look();
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

}  // namespace fleet
