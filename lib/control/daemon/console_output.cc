#include "daemon/console_output.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/attach_terminal.h"
#include "daemon/file_watcher.h"
#include "launch/planning/launch_config.h"
#include "node/process_handle.h"
#include "rendezvous/types.h"
#include "transport/loop_descriptor.h"

namespace fleet {
namespace {

// Whether a line of standard error belongs to a rank: "[rank 3 10.0.0.2] ...", "[ranks 0-6] ...",
// possibly after a time stamp. No line of a launcher starts like this.
bool is_of_rank(std::string_view line) {
  constexpr size_t kStamp = std::string_view("2026-11-20T15:04:05.123+01:00 ").size();
  if (line.size() > kStamp && line[4] == '-' && line[10] == 'T' && line[kStamp - 1] == ' ') {
    line.remove_prefix(kStamp);
  }
  return line.starts_with("[rank ") || line.starts_with("[ranks ");
}

std::string labelled(const std::string& node, bool error, std::string_view line) {
  return (error && !is_of_rank(line) ? "[" + node + "] " : "") + std::string(line);
}

}  // namespace

ConsoleOutput::ConsoleOutput(EventLoop& loop, bool several, Kind kind)
    : output_(loop, STDOUT_FILENO), errors_(loop, STDERR_FILENO), several_(several), kind_(kind) {}

void ConsoleOutput::on_drained(const std::function<void()>& callback) {
  output_.on_drained(callback);
  errors_.on_drained(callback);
}

void ConsoleOutput::write(const std::string& node, bool error, std::string_view text) {
  std::string safe;
  if (kind_ == Kind::kHistory && output_.is_terminal()) {
    const bool colors = wants_colors(STDOUT_FILENO);
    text = safe = filters_.try_emplace({node, error}, colors).first->second.pass(text);
  }
  if (!several_) return console(error).write(text);
  LineSplitter& lines = lines_[{node, error}];
  lines.add(text);
  std::string whole;
  for (std::string_view line; lines.next(&line);) whole += labelled(node, error, line);
  console(error).write(whole);
}

void ConsoleOutput::flush() {
  for (auto& [source, lines] : lines_) {
    const std::string rest = lines.rest();
    if (rest.empty()) continue;
    console(source.second).write(labelled(source.first, source.second, rest + "\n"));
  }
}

void LocalOutput::add(const JobRecord::Rank& rank) {
  several_ = !sources_.empty();
  add(rank, false);
  if (!rank.error_log().empty()) add(rank, true);
}

void LocalOutput::add(const JobRecord::Rank& rank, bool error) {
  const LogPosition &begin = error ? rank.error_begin() : rank.log_begin(),
                    &end = error ? rank.error_end() : rank.log_end();
  const std::string& path = error ? rank.error_log() : rank.log_path();
  const LogPosition tail = tail_of_log(path, begin, end, max_bytes_);
  const bool cut = tail.at() > 0 && (tail.at() != begin.at() || tail.file() != begin.file());
  sources_.push_back(std::make_unique<Source>(
      Source{rank.rank(), rank.server(), error, path, LogReader(path), cut, {}, {}}));
  const int fd = ::fileno(file_of(*sources_.back()));
  if (::isatty(fd) == 1) {
    sources_.back()->filter = std::make_unique<TerminalFilter>(wants_colors(fd));
  }
  sources_.back()->reader.begin_at(tail);
  sources_.back()->reader.end_at(end);
}

std::vector<std::string> LocalOutput::paths() const {
  std::vector<std::string> all;
  for (const auto& source : sources_) all.push_back(source->path);
  return all;
}

bool LocalOutput::copy() {
  bool all = true;
  for (const auto& source : sources_) {
    all = source->reader.read([&](std::string_view text) { write(source.get(), text); }) && all;
  }
  std::fflush(stdout);
  return all;
}

void LocalOutput::end(const JobRecord& record) {
  for (const auto& source : sources_) {
    for (const JobRecord::Rank& rank : record.ranks()) {
      if (rank.log_path() == source->path) source->reader.end_at(rank.log_end());
      if (rank.error_log() == source->path) source->reader.end_at(rank.error_end());
    }
  }
}

void LocalOutput::write(Source* source, std::string_view text) {
  if (source->cut) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    source->cut = false;
  }
  std::string safe;
  if (source->filter) text = safe = source->filter->pass(text);
  if (!several_) {
    std::fwrite(text.data(), 1, text.size(), file_of(*source));
    return;
  }
  source->lines.add(text);
  for (std::string_view line; source->lines.next(&line);) write_line(*source, line);
}

void LocalOutput::write_line(const Source& source, std::string_view line) {
  std::FILE* to = file_of(source);
  std::fprintf(to, "[%s %d] ", source.server ? "server" : "rank", source.rank);
  std::fwrite(line.data(), 1, line.size(), to);
}

void LocalOutput::finish() {
  for (const auto& source : sources_) {
    const std::string rest = source->lines.rest();
    if (!rest.empty()) write_line(*source, rest + "\n");
  }
  std::fflush(stdout);
}

namespace {

constexpr std::chrono::milliseconds kLookInterval{100};

// Follows the output until all of some processes have ended.
class ProcessFollower {
 public:
  ProcessFollower(LocalOutput* output, const std::vector<JobInfo>& parts)
      : output_(output), signals_(loop_), watch_(loop_) {
    for (const JobInfo& part : parts) {
      if (part.phase() != JobInfo::ENDED) wait_for(part.record());
    }
  }

  // `job_id`: for the line about the keys.
  void attach(const std::string& job_id) {
    for (const int signal : forwarded_signals()) {
      if (signal != SIGINT) signals_.add(signal);
    }
    signals_.on_signal([this](int signal) { on_signal(signal); });
    terminal_.emplace(loop_, AttachTerminal::Handlers{[this] { leave(AttachEnd::kDetached); },
                                                      [this] { on_signal(SIGINT); }});
    job_id_ = job_id;
  }

  AttachEnd run() {
    for (const std::string& path : output_->paths()) {
      try {
        watch_.watch_file(path, [this] { output_->copy(); });
      } catch (const Error& error) {  // its folder no longer exists
        spdlog::warn("{}", error.what());
      }
    }
    output_->copy();
    if (running_ == 0) return end_;
    if (terminal_) terminal_->print_keys(job_id_);
    loop_.run();
    return end_;
  }

 private:
  struct Launcher {
    Launcher(EventLoop& loop, const JobRecord& record)
        : process(record.pid(), record.start_ticks()), end(loop), look(loop) {}
    const ProcessHandle process;
    LoopDescriptor end;
    LoopTimer look;  // without a descriptor
  };

  void wait_for(const JobRecord& record) {
    auto launcher = std::make_unique<Launcher>(loop_, record);
    if (!launcher->process.runs()) return;
    ++running_;
    UniqueFd end = launcher->process.end_descriptor();
    Launcher& waited = *launchers_.emplace_back(std::move(launcher));
    if (!end) return look_for_end(waited);
    waited.end.assign(std::move(end));
    waited.end.wait(LoopDescriptor::Event::kReadable, [this](std::error_code) { on_end(); });
  }

  void look_for_end(Launcher& launcher) {
    if (!launcher.process.runs()) return on_end();
    launcher.look.after(kLookInterval, [this, &launcher] { look_for_end(launcher); });
  }

  void on_end() {
    if (--running_ == 0) loop_.stop();
  }

  void leave(AttachEnd end) {
    end_ = end;
    loop_.stop();
  }

  void on_signal(int signal) {
    if (signal == SIGHUP) return leave(AttachEnd::kHungUp);  // a lost terminal stops no job
    const bool stops = signal != SIGUSR1 && signal != SIGUSR2;
    if (stops && !std::exchange(stopping_, true)) {
      spdlog::warn("{}: stopping the ranks; send it again to kill them", signal_name(signal));
    }
    forward(signal);
  }

  void forward(int signal) const {
    for (const auto& launcher : launchers_) {  // one launcher forwards it to the others
      if (launcher->process.signal(signal)) return;
    }
  }

  EventLoop loop_;
  LocalOutput* output_;
  LoopSignals signals_;
  FileWatcher watch_;
  std::vector<std::unique_ptr<Launcher>> launchers_;
  int running_ = 0;
  std::optional<AttachTerminal> terminal_;
  std::string job_id_;
  AttachEnd end_ = AttachEnd::kJobEnded;
  bool stopping_ = false;
};

// The rest of the output after the end of the job, or up to now.
void finish_output(LocalOutput* output, const std::vector<JobInfo>& parts) {
  for (const JobInfo& part : parts) {
    if (const auto ended = refresh(part.record())) output->end(ended->record());
  }
  output->copy();
  output->finish();
}

}  // namespace

void follow_local(LocalOutput* output, const std::vector<JobInfo>& parts) {
  ProcessFollower(output, parts).run();
  finish_output(output, parts);
}

AttachEnd attach_to_local(LocalOutput* output, const std::vector<JobInfo>& parts) {
  ProcessFollower follower(output, parts);
  follower.attach(parts[0].record().job_id());
  const AttachEnd end = follower.run();
  if (end == AttachEnd::kJobEnded) finish_output(output, parts);
  return end;
}

}  // namespace fleet
