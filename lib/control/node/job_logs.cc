#include "node/job_logs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

namespace fleet {

RankLog::RankLog(const LogContext& context, const wire::RankCommand& command, RankOutput output,
                 std::vector<std::optional<LogFile>> files)
    : context_(context),
      rank_(command.rank()),
      label_(command.label()),
      filters_bar_(command.draws_bar()) {
  const wire::LogSettings& settings = context.settings;
  const bool apart = static_cast<bool>(output.error);
  // If two streams share a destination, they must not split each other's lines.
  const bool lines = settings.stamp_console() || (apart && !settings.errors_apart());
  keep_lines_ = settings.stamp_files() || apart;
  for (std::optional<LogFile>& file : files) files_.push_back({std::move(file)});
  const auto add = [&](UniqueFd end, int shown, const ConsoleTarget& target,
                       const wire::ConsoleStream& how, LineCopies& copies) {
    streams_.push_back(std::make_unique<Stream>(context_.loop, std::move(end), target, copies));
    Stream* stream = streams_.back().get();
    stream->file = std::min(streams_.size(), files_.size()) - 1;
    stream->shown = (command.shown_streams() & shown) != 0;
    stream->labelled = (command.labelled_streams() & shown) != 0;
    stream->in_lines = stream->shown && (lines || (settings.labels() && stream->labelled) ||
                                         how.collapse_ms() > 0 || copies.wanted());
    if (stream->in_lines) target.lines.begin_rank(rank_, label_);
    wait(stream);
  };
  add(std::move(output.output), wire::RankCommand::STANDARD_OUTPUT, context_.output,
      settings.output(), context_.output_copies);
  if (!apart) return;
  add(std::move(output.error), wire::RankCommand::STANDARD_ERROR, context_.errors,
      settings.errors_apart() ? settings.errors() : settings.output(), context_.error_copies);
}

void RankLog::wait(Stream* stream) {
  if (stream->waits || stream->closed) return;
  if (stream->shown && stream->target.console.full()) return;
  stream->waits = true;
  stream->pipe.wait(LoopDescriptor::Event::kReadable, [this, stream](std::error_code error) {
    stream->waits = false;
    if (error) return;
    // One piece per turn: a rank that writes endlessly must not starve the loop.
    read_once(stream);
    wait(stream);
  });
}

void RankLog::resume() {
  for (const auto& stream : streams_) wait(stream.get());
}

bool RankLog::read_once(Stream* stream) {
  const std::span<char> buffer = context_.buffer;
  const ssize_t n = ::read(stream->pipe.get(), buffer.data(), buffer.size());
  if (n > 0) {
    if (bytes_ == 0) first_output_ns_ = monotonic_ns();
    bytes_ += n;
    if (context_.settings.stamp_files()) read_at_ = std::chrono::system_clock::now();
    take(stream, {buffer.data(), static_cast<size_t>(n)});
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  stream->closed = true;
  finish(stream);
  return false;
}

void RankLog::drain() {
  // At most a few pipes full, because other writers may never stop.
  for (const auto& stream : streams_) {
    for (int i = 0; i < 64 && !stream->closed && read_once(stream.get()); ++i) {
    }
  }
}

void RankLog::finish() {
  drain();
  for (const auto& stream : streams_) finish(stream.get());
}

void RankLog::finish(Stream* stream) {
  if (std::exchange(stream->finished, true)) return;
  std::string text, stamped;
  if (filters_bar_ && stream == streams_.front().get()) keep(stream, filter_.rest());
  const std::string rest = stream->kept.rest();
  if (!rest.empty()) {
    keep_line(stream, rest, &text, &stamped);
    tail_.add(text);
    files_[stream->file].write(context_.settings.stamp_files() ? stamped : text);
  }
  if (!stream->in_lines) return;
  ConsoleLines& lines = stream->target.lines;
  const std::string last = stream->on_console.rest();
  if (!last.empty()) show_line(stream, last);
  const bool other = std::any_of(streams_.begin(), streams_.end(), [&](const auto& one) {
    return one->in_lines && !one->finished && &one->target.lines == &lines;
  });
  other ? lines.pass_on() : lines.end_rank(rank_);
}

void RankLog::take(Stream* stream, std::string_view output) {
  if (stream->shown) show(stream, output);
  const bool first = stream == streams_.front().get();
  if (first) step_lines_.scan(output, monotonic_ns());
  keep(stream, filters_bar_ && first ? filter_.pass(output) : output);
}

void RankLog::show(Stream* stream, std::string_view output) {
  Console& console = stream->target.console;
  if (!stream->in_lines) return console.write(output);
  // Skip splitting into lines if none would be shown.
  const size_t dropped = console.drops() ? output.rfind('\n') + 1 : 0;
  if (dropped > 0) {
    const size_t begun = stream->on_console.rest().size();
    console.count_dropped(std::count(output.begin(), output.begin() + dropped, '\n'),
                          static_cast<int64_t>(begun + dropped));
    output.remove_prefix(dropped);
  }
  stream->on_console.add(output);
  for (std::string_view line; stream->on_console.next(&line);) show_line(stream, line);
  stream->target.lines.pass_on();
}

void RankLog::show_line(Stream* stream, std::string_view line) {
  stream->target.lines.add(rank_, line, stream->labelled);
  if (!stream->copies.wanted()) return;
  stream->copies.offer(label_.empty() ? "[rank " + std::to_string(rank_) + "] " : label_, line);
}

void RankLog::keep(Stream* stream, std::string_view output) {
  KeptFile& file = files_[stream->file];
  if (!keep_lines_) {
    tail_.add(output);
    return file.write(output);
  }
  std::string text, stamped;
  stream->kept.add(output);
  for (std::string_view line; stream->kept.next(&line);) keep_line(stream, line, &text, &stamped);
  tail_.add(text);
  file.write(context_.settings.stamp_files() ? stamped : text);
}

// Appends the line to both texts. A line without an end continues with the same stream's next one;
// another stream's line ends it.
void RankLog::keep_line(Stream* stream, std::string_view line, std::string* text,
                        std::string* stamped) {
  KeptFile& kept = files_[stream->file];
  const bool goes_on = kept.open == stream;
  const std::string_view end = kept.open && !goes_on ? "\n" : "";
  *text += end;
  *text += line;
  if (context_.settings.stamp_files()) {
    *stamped += end;
    if (!goes_on) *stamped += stamp_.at(read_at_);
    *stamped += line;
  }
  kept.open = line.ends_with('\n') || line.ends_with('\r') ? nullptr : stream;
}

void RankLog::close_except(const std::vector<std::string>& paths) {
  for (KeptFile& kept : files_) {
    if (kept.file && std::ranges::find(paths, kept.file->path()) == paths.end()) kept.file->close();
  }
}

std::string RankLog::shown() const {
  LogTail tail = tail_;
  for (const auto& stream : streams_) tail.add(stream->kept.held());
  return tail.shown(true);
}

namespace {

// Once the job is over, a console that accepts nothing for this long is abandoned.
constexpr std::chrono::seconds kConsoleAfter{2};
constexpr size_t kReadSize = 256 << 10;

std::vector<std::string> paths_of(const wire::SpawnRanks& spawn) {
  std::vector<std::string> paths;
  for (const wire::RankCommand& rank : spawn.ranks()) {
    if (!rank.log_path().empty()) paths.push_back(rank.log_path());
    if (!rank.error_log_path().empty()) paths.push_back(rank.error_log_path());
  }
  return paths;
}

}  // namespace

JobLogs::JobLogs(EventLoop& loop)
    : loop_(loop),
      output_(loop, STDOUT_FILENO),
      errors_(loop, STDERR_FILENO),
      output_lines_(loop, output_),
      error_lines_(loop, errors_),
      limit_(loop) {
  for (Console* console : {&output_, &errors_}) {
    console->on_drained([this] {
      for (const auto& log : logs_) log->resume();
      if (idle()) done();
    });
  }
}

void JobLogs::begin(const wire::SpawnRanks& spawn) {
  const std::vector<std::string> paths = paths_of(spawn);
  for (const auto& log : logs_) {
    log->finish();
    log->close_except(paths);  // torchrun's logs have a folder for each start
  }
  logs_.clear();
  settings_ = spawn.logs();
  output_lines_.begin(settings_, settings_.output());
  error_lines_.begin(settings_, settings_.errors());
  output_copies_.begin(settings_.output_copies());
  error_copies_.begin(settings_.error_copies());
  output_.drop_when_full(settings_.output().drop());
  errors_.drop_when_full(settings_.errors().drop());
  if (!spawn.ranks().empty()) {
    output_.set_log_hint(spawn.ranks(0).log_path());
    errors_.set_log_hint(spawn.ranks(0).log_path());
  }
  if (buffer_.empty()) buffer_.resize(kReadSize);
  if (!folder_) folder_.emplace(settings_, paths);
}

RankLog* JobLogs::open(const wire::RankCommand& command, RankOutput pipes) {
  return open(command, std::move(pipes), LogFile::Start::kRestarted);
}

RankLog* JobLogs::open_again(RankLog* ended, const wire::RankCommand& command, RankOutput pipes) {
  ended->finish();
  std::erase_if(logs_, [&](const auto& log) { return log.get() == ended; });
  return open(command, std::move(pipes), LogFile::Start::kReplaced);
}

RankLog* JobLogs::open(const wire::RankCommand& command, RankOutput pipes, LogFile::Start next) {
  std::vector<std::optional<LogFile>> files;
  const auto add_file = [&](const std::string& path) {
    files.emplace_back();
    if (path.empty()) return;
    const bool first = opened_.insert(path).second;
    files.back().emplace(&*folder_, path, first ? LogFile::Start::kFirst : next);
  };
  add_file(command.log_path());
  if (command.splits_streams()) add_file(command.error_log_path());
  ConsoleTarget output_target{output_, output_lines_}, error_target{errors_, error_lines_};
  // On one terminal, both streams share one path, so that they keep their order.
  const LogContext context{
      loop_,          output_target, settings_.errors_apart() ? error_target : output_target,
      output_copies_, error_copies_, settings_,
      buffer_};
  logs_.push_back(std::make_unique<RankLog>(context, command, std::move(pipes), std::move(files)));
  return logs_.back().get();
}

void JobLogs::finish(std::function<void()> on_done) {
  for (const auto& log : logs_) log->finish();
  output_lines_.flush();
  error_lines_.flush();
  on_done_ = std::move(on_done);
  if (idle()) return done();
  wait_for_consoles();
}

void JobLogs::wait_for_consoles() {
  const int64_t taken = output_.taken() + errors_.taken();
  limit_.after(kConsoleAfter, [this, taken] {
    if (output_.taken() + errors_.taken() != taken) return wait_for_consoles();
    spdlog::warn("{} of the ranks' output are not shown: standard {} accepts no more data",
                 mebibytes(output_.waiting() + errors_.waiting()),
                 output_.idle() ? "error" : "output");
    done();
  });
}

void JobLogs::done() {
  if (!on_done_) return;
  limit_.cancel();
  std::exchange(on_done_, nullptr)();
}

}  // namespace fleet
