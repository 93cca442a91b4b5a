#include "node/rank_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fleet {

namespace asio = boost::asio;

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
    streams_.push_back(std::make_unique<Stream>(
        asio::posix::stream_descriptor(context_.loop, end.release()), target, copies));
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
  stream->pipe.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, stream](boost::system::error_code error) {
                            if (error == asio::error::operation_aborted) return;
                            stream->waits = false;
                            if (error) return;
                            // One piece per turn: a rank that writes endlessly must not starve the
                            // loop.
                            read_once(stream);
                            wait(stream);
                          });
}

void RankLog::resume() {
  for (const auto& stream : streams_) wait(stream.get());
}

bool RankLog::read_once(Stream* stream) {
  const std::span<char> buffer = context_.buffer;
  const ssize_t n = ::read(stream->pipe.native_handle(), buffer.data(), buffer.size());
  if (n > 0) {
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
  const bool filters = filters_bar_ && stream == streams_.front().get();
  keep(stream, filters ? filter_.pass(output) : output);
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

std::string RankLog::shown() const {
  LogTail tail = tail_;
  for (const auto& stream : streams_) tail.add(stream->kept.held());
  return tail.shown(true);
}

}  // namespace fleet
