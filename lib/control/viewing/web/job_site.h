// The page of one job: its files, its events, and the logs of its ranks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal_text.h"
#include "diagnosis/live_history.h"
#include "node/line_splitter.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"
#include "transport/http_server.h"
#include "viewing/web/page_events.h"

namespace fleet {

// A job as a page asks about it: on this host, or through fleetd. Everything happens in the loop's
// thread; each callback is called once, now or later.
class WatchedJob {
 public:
  // The report, or why there is none: kNotFound if the job does not run (any longer).
  struct Answer {
    std::optional<LiveReport> report;
    std::optional<Error> failure;
  };

  virtual ~WatchedJob() = default;
  // history: the report is to have it too.
  virtual void live(bool history, std::function<void(Answer)> done) = 0;
  // nullopt: it has not ended as far as is known.
  virtual void outcome(std::function<void(std::optional<JobOutcome>)> done) = 0;
  // Sends the last lines of that log, and each later one, until the stream is closed. Throws
  // kNotFound if no node that can be asked has the rank.
  virtual void log(const WatchedLog& which, std::shared_ptr<HttpStream> stream) = 0;
};

// Asks the fleetrun with this pid, on this host.
void ask_launcher(EventLoop& loop, pid_t pid, bool history,
                  std::function<void(WatchedJob::Answer)> done);

// Streams that get the same events.
class EventStreams {
 public:
  EventStreams() = default;
  ~EventStreams();  // closes them
  EventStreams(const EventStreams&) = delete;
  void add(std::shared_ptr<HttpStream> stream) { streams_.push_back(std::move(stream)); }
  // A browser that is too far behind does without this one.
  void send(std::string_view event, std::string_view data);
  bool any();  // forgets those that are closed

 private:
  std::vector<std::shared_ptr<HttpStream>> streams_;
};

// Asks the job for its state once a second while someone looks, and otherwise every
// `idle_interval`, so that it has the job's history when the job has ended. Not thread-safe:
// everything happens in the loop's thread.
class JobSite : public std::enable_shared_from_this<JobSite> {
 public:
  JobSite(EventLoop& loop, std::unique_ptr<WatchedJob> job, std::chrono::seconds idle_interval);
  void begin() { look(); }

  // `path`: below the job's folder: "", "events", "log", ...
  HttpServer::Response respond(const std::string& path, const HttpRequest& request);
  // How the job has ended, once that is known.
  const std::optional<JobOutcome>& outcome() const { return outcome_; }
  const wire::LiveHistory& history() const { return history_.points(); }
  // Keeps only the data that the list of jobs shows if the job has ended and its page is closed.
  void tidy();
  // Called once the outcome is known.
  std::function<void(const JobOutcome&)> on_end = [](const JobOutcome&) {};

 private:
  void look();
  void look_again();
  void on_answer(const WatchedJob::Answer& answer);
  void on_outcome(const Error& failure, const std::optional<JobOutcome>& outcome);
  void greet(const std::shared_ptr<HttpStream>& stream);
  std::string history_now() const;

  EventLoop& loop_;
  const std::unique_ptr<WatchedJob> job_;
  const std::chrono::seconds idle_interval_;
  LoopTimer timer_;
  LiveHistory history_;
  EventStreams streams_;
  std::string last_frame_;
  std::optional<JobOutcome> outcome_;
  bool waiting_ = false;      // for the next look
  bool want_history_ = true;  // what has happened since the last answer
};

// The files of the page, which are the same for all jobs: "", "page.css", "page.js"; nullopt: no
// such file.
std::optional<HttpServer::Response> page_file(const std::string& path);
HttpServer::Response not_found();

// Those files as they are, embedded by CMake.
std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

// --- A rank's log as Server-Sent Events ---

// So much of the past is sent at first.
inline constexpr int64_t kPastLogBytes = 64 << 10;

// Whole lines of a log as an event "lines" with {"text", "error"}. Not thread-safe.
class LogLines {
 public:
  // `cut`: the log begins in the middle of a line, which is left out. `error`: it is standard
  // error.
  LogLines(bool cut, bool error) : cut_(cut), error_(error) {}
  // The event; "" if no line has ended. Without colours, and without text that a terminal would
  // have overwritten.
  std::string add(std::string_view bytes);
  void skip_to_next_line() { cut_ = true; }

 private:
  bool cut_;
  const bool error_;
  TerminalFilter filter_{false};
  LineSplitter lines_;
};

// Sends the end of the log of a rank of this host, including its standard error, and each new line
// until the stream is closed.
void stream_local_log(EventLoop& loop, const JobRecord::Rank& rank,
                      std::shared_ptr<HttpStream> stream);

}  // namespace fleet
