// fleetrun top [JOB]: what every rank of a running job does, refreshed once a second.
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "daemon/fleetd_client.h"
#include "launch/planning/refuse.h"
#include "transport/event_loop.h"
#include "viewing/live_view.h"
#include "viewing/web/sites.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

// "night", or the pid of its fleetrun if another of these jobs has the same name.
std::string top_name_of(const JobPart& job, const std::vector<const JobPart*>& jobs) {
  const JobRecord& record = job.job.record();
  const auto alike = [&](const JobPart* other) {
    return other->job.record().job_id() == record.job_id();
  };
  if (std::ranges::count_if(jobs, alike) == 1) return shown_name(record.job_id());
  return std::to_string(record.pid()) + " (" + shown_name(record.job_id()) + ")";
}

// The running parts of the job to look at.
std::vector<JobPart> running_job(const std::string& name, FleetdClient* fleetds) {
  std::vector<JobPart> parts = name.empty() ? fleetds->find("") : fleetds->require(name);
  std::erase_if(parts, [](const JobPart& part) {
    return part.job.phase() != JobInfo::RUNNING && part.job.phase() != JobInfo::STOPPING &&
           part.job.phase() != JobInfo::FORMING;
  });
  if (parts.empty()) {
    throw Error(ErrorCode::kNotFound, name.empty() ? "no job runs" : "it does not run",
                name.empty() ? "top" : "job " + shown_name(name), "fleetrun ls lists the jobs");
  }
  std::vector<const JobPart*> jobs;  // a part of each
  for (const JobPart& part : parts) {
    const auto same = [&](const JobPart* other) { return same_run(part.job, other->job); };
    if (std::ranges::none_of(jobs, same)) jobs.push_back(&part);
  }
  if (jobs.size() > 1) {
    std::vector<std::string> names;
    for (const JobPart* job : jobs) names.push_back(top_name_of(*job, jobs));
    refuse("several jobs run", "top", "name one: " + join(names, ", "));
  }
  return parts;
}

// Waits for the answers of a job.
class LiveSource {
 public:
  LiveSource(std::vector<JobPart> parts, FleetdClient* fleetds)
      : job_(job_of_parts(loop_, std::move(parts), fleetds)) {}

  // kNotFound if the job has ended, kTimeout if no launcher answers.
  LiveReport read() {
    std::optional<WatchedJob::Answer> answer;
    job_->live(false, [&](WatchedJob::Answer given) {
      answer = std::move(given);
      loop_.stop();
    });
    if (!answer) loop_.run_until_stopped();
    loop_.restart();
    if (!answer->report) throw *answer->failure;
    return *std::move(answer->report);
  }

 private:
  EventLoop loop_;
  const std::unique_ptr<WatchedJob> job_;
};

// The terminal while frames are drawn on it: no echo, no scrolled lines; as before at the end.
class Screen {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write("\x1b[?1049h\x1b[?25l");  // the other screen, no cursor
  }
  ~Screen() {
    write("\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;

  // The last row has the keys.
  void draw(const LiveFrame& frame, const LiveViewOptions& view) {
    std::string text = "\x1b[H";
    // Erased first: behind a line as wide as the terminal, the last character would go.
    for (const std::string& line : frame.lines) text += "\x1b[2K" + line + "\n";
    text += "\x1b[J\x1b[" + std::to_string(view.rows + 1) + ";1H";
    const std::string keys = live_key_line(frame, view);
    write(text + (view.colors ? "\x1b[2m" + keys + "\x1b[0m" : keys));
  }
  static void size(LiveViewOptions* view) {
    winsize now = {};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) != 0 || now.ws_col == 0) return;
    view->columns = now.ws_col;
    view->rows = std::max(now.ws_row - 1, 1);  // and the line of the keys
  }

 private:
  static void write(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  termios before_ = {};
};

class Top {
 public:
  Top(const CommandLine& line, std::vector<JobPart> parts, FleetdClient* fleetds, UniqueFd signals)
      : source_(std::move(parts), fleetds),
        signals_(std::move(signals)),
        json_(line.settings.text("format") == "json"),
        once_(line.settings.boolean("once")),
        interval_(line.settings.number("interval")) {
    view_.sort = line.settings.text("sort");
    view_.by_node = line.settings.text("by") == "node";
    view_.colors = wants_colors(STDOUT_FILENO);
  }

  int run() {
    LiveReport report = source_.read();  // an error before the first frame is the command's
    const bool draws = !once_ && !json_ && ::isatty(STDOUT_FILENO) && ::isatty(STDIN_FILENO);
    if (::isatty(STDOUT_FILENO)) Screen::size(&view_);
    if (!draws) view_.rows = 0;
    if (once_) return show(report), 0;
    next_ = monotonic_seconds() + interval_;
    const std::string ended = draws ? on_screen(&report) : by_lines(&report);
    if (!ended.empty()) std::fprintf(stderr, "%s\n", ended.c_str());
    return signal_ == 0 ? 0 : 128 + signal_;
  }

 private:
  void show(const LiveReport& report) {
    const std::string text =
        json_ ? live_json(report, view_.sort, unix_seconds()) : live_frame(report, view_).text();
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  // Returns why there are no more frames; "" if the user has ended them.
  std::string by_lines(LiveReport* report) {
    bool was_silent = false;
    for (;;) {
      if (silence_.empty()) {  // no old values as if they were new
        show(*report);
        if (!json_) std::fputs("\n", stdout);
        was_silent = false;
      } else if (!std::exchange(was_silent, true)) {
        std::fprintf(stderr, "%s\n", silence_.c_str());
      }
      if (wait(nullptr) == Wake::kEnd) return "";
      if (const auto ended = refresh(report)) return *ended;
    }
  }

  std::string on_screen(LiveReport* report) {
    Screen screen;
    for (;;) {
      Screen::size(&view_);
      view_.note = silence_;
      const LiveFrame frame = live_frame(*report, view_);
      view_.first = frame.first;  // it may have been beyond the end
      screen.draw(frame, view_);
      const Wake wake = wait(&frame);
      if (wake == Wake::kEnd) return "";
      if (wake == Wake::kRedraw) continue;
      if (const auto ended = refresh(report)) return *ended;
    }
  }

  std::optional<std::string> refresh(LiveReport* report) {
    try {
      *report = source_.read();
      silence_.clear();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kNotFound) {
        return "job " + shown_name(report->job_id()) + " has ended";
      }
      silence_ = error.failure();  // it may answer again
      if (!json_) spdlog::debug("{}", error.what());
    }
    next_ = monotonic_seconds() + interval_;
    return std::nullopt;
  }

  enum class Wake { kDue, kRedraw, kEnd };

  // Until the next report is due, or a key or another size of the terminal needs a new frame of
  // the present one. `frame`: on the screen; nullptr: there is none, and no keyboard.
  Wake wait(const LiveFrame* frame) {
    pollfd both[] = {{signals_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    for (;;) {
      const double now = monotonic_seconds();
      if (now >= next_) return Wake::kDue;
      const int ready =
          ::poll(both, frame ? 2 : 1, static_cast<int>(std::ceil(1000 * (next_ - now))));
      if (ready < 0 && errno != EINTR) return Wake::kDue;
      if (ready <= 0) continue;
      signalfd_siginfo info = {};
      if (both[0].revents && ::read(signals_.get(), &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH) {
          if (frame) return Wake::kRedraw;
          continue;
        }
        signal_ = static_cast<int>(info.ssi_signo);
        return Wake::kEnd;
      }
      if (!frame || !both[1].revents) continue;
      const Wake wake = read_keys(*frame);
      if (wake != Wake::kDue) return wake;
    }
  }

  // kDue: no key has changed anything.
  Wake read_keys(const LiveFrame& frame) {
    char typed[64];
    const ssize_t size = ::read(STDIN_FILENO, typed, sizeof typed);
    if (size <= 0) return Wake::kEnd;
    Wake wake = Wake::kDue;
    for (ssize_t i = 0; i < size; ++i) {
      const LiveKeyboard::Act act = keyboard_.press(typed[i], frame, &view_);
      if (act == LiveKeyboard::Act::kEnd) return Wake::kEnd;
      if (act == LiveKeyboard::Act::kRedraw) wake = Wake::kRedraw;
    }
    return wake;
  }

  LiveSource source_;
  const UniqueFd signals_;
  const bool json_, once_;
  const double interval_;  // seconds
  LiveViewOptions view_;
  LiveKeyboard keyboard_;
  double next_ = 0;      // when the next report is due
  std::string silence_;  // a line if the last look failed
  int signal_ = 0;
};

// Before gRPC starts its threads: in one of them, a signal would end the process and leave the
// terminal as it is.
UniqueFd watch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

int top(const CommandLine& line) {
  set_up_logging("INFO", "fleetrun");
  const WebConfig web = read_web_config(line.settings);
  for (const char* key : {"once", "format", "sort", "by"}) {
    if (web.wanted() && line.settings.given(key)) {
      refuse("a page takes no --" + std::string(key), "--web", "leave one of them out");
    }
  }
  if (line.settings.given("by") && line.settings.text("format") == "json") {
    refuse("JSON always has all ranks", "--by", "leave out --by or --format=json");
  }
  UniqueFd signals = web.wanted() || line.settings.boolean("once") ? UniqueFd() : watch_signals();
  FleetdClient fleetds(line.settings);
  std::vector<JobPart> parts = running_job(line.words.empty() ? "" : line.words[0], &fleetds);
  if (web.wanted()) return serve_top(web, std::move(parts), &fleetds);
  return Top(line, std::move(parts), &fleetds, std::move(signals)).run();
}

}  // namespace

FLEET_COMMAND(top) {
  def.syntax = {.program = "fleetrun top",
                .words = "[JOB]",
                .about =
                    "show the progress of all ranks of a running job\n"
                    "Shows steps, speed, waiting time, loss, CPU, memory and GPU of each rank, on "
                    "all\nnodes, once a second. A \"*\" marks the slowest rank. Keys: q ends it, "
                    "arrows\nscroll, N shows nodes, ? lists all keys.",
                .most = 1};
  def.syntax.options.flag({.key = "once"}, "print one frame and exit")
      .choice({.key = "format", .value = "text|json", .optional = true}, "text", {"text", "json"},
              "output format; json: one line per frame (default: text)")
      .choice({.key = "sort", .value = "KEY", .optional = true}, "rank", live_sort_keys(),
              "column to sort by, the largest first (default: rank)")
      .choice({.key = "by", .value = "rank|node", .optional = true}, "rank", {"rank", "node"},
              "a line for each rank, or with sums for each node (default: rank)")
      .number({.key = "interval", .value = "SECONDS"}, 1, 0.1, 3600, "time between frames");
  add_web_options(
      "127.0.0.1:0",
      "serve a page for browsers on this host instead; without a value: at any free port",
      &def.syntax.options);
  add_fleetd_options(&def.syntax.options);
  def.run = top;
}

}  // namespace fleet
