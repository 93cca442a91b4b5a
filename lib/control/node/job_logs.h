// All output of this node's ranks: their logs and the console.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "node/console.h"
#include "node/line_splitter.h"
#include "node/log_file.h"
#include "node/spawn.h"
#include "node/step_lines.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// The destination of a stream of the ranks: raw, or line by line.
struct ConsoleTarget {
  Console& console;
  ConsoleLines& lines;
};

// State shared by the logs of a node's ranks; must outlive them.
struct LogContext {
  EventLoop& loop;
  ConsoleTarget output, errors;  // may be the same place
  LineCopies &output_copies, &error_copies;
  const wire::LogSettings& settings;
  std::span<char> buffer;  // read buffer
};

// A rank's output: from its pipes to its log files and the console.
class RankLog {
 public:
  // Keeps the output of the pipes in the rank's files. Shown output also goes to the console, raw
  // or line by line. While the console is full, the pipe is not read, as if the rank wrote to it
  // directly. A progress bar is drawn on standard output.
  RankLog(const LogContext& context, const wire::RankCommand& command, RankOutput output,
          std::vector<std::optional<LogFile>> files);
  RankLog(const RankLog&) = delete;
  // Reads what the pipes hold now: the rank has ended, but other processes may keep them open.
  void drain();
  // Ends the log: also writes an incomplete line.
  void finish();
  // After finish(): closes the files at other paths than these.
  void close_except(const std::vector<std::string>& paths);
  // Call it when the console has room again.
  void resume();
  int64_t bytes() const { return bytes_; }  // read so far
  // CLOCK_MONOTONIC; 0: it has written nothing.
  int64_t first_output_ns() const { return first_output_ns_; }
  // Its last lines as a terminal would show them, with their colours.
  std::string shown() const;
  // Steps that its standard output has reported since the last call. Includes standard error if
  // both share a pipe.
  std::vector<StepText> take_step_reports() { return step_lines_.take(); }

 private:
  struct Stream {
    Stream(EventLoop& loop, UniqueFd end, const ConsoleTarget& where, LineCopies& kept)
        : pipe(loop, std::move(end)), target(where), copies(kept) {}
    LoopDescriptor pipe;
    ConsoleTarget target;
    LineCopies& copies;
    size_t file = 0;  // index in files_
    bool shown = false, in_lines = false, labelled = true, waits = false, closed = false,
         finished = false;
    LineSplitter kept, on_console;
  };
  // A file and the stream whose incomplete line ends it.
  struct KeptFile {
    std::optional<LogFile> file;  // nullopt: only the last lines are kept
    void write(std::string_view text) {
      if (file) file->write(text);
    }
    const Stream* open = nullptr;
  };

  void wait(Stream* stream);
  bool read_once(Stream* stream);  // false if the pipe is empty or closed
  void take(Stream* stream, std::string_view output);
  void show(Stream* stream, std::string_view output);
  void show_line(Stream* stream, std::string_view line);
  void keep(Stream* stream, std::string_view output);
  void keep_line(Stream* stream, std::string_view line, std::string* text, std::string* stamped);
  void finish(Stream* stream);

  LogContext context_;
  int rank_;
  std::string label_;
  bool filters_bar_, keep_lines_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<KeptFile> files_;
  LogTail tail_;
  BarFilter filter_;
  StepLineFinder step_lines_;
  Stamp stamp_;
  Stamp::WallTime read_at_{};
  int64_t bytes_ = 0, first_output_ns_ = 0;
};

// Not thread-safe: everything happens in the loop's thread.
class JobLogs {
 public:
  explicit JobLogs(EventLoop& loop);
  // Call it before the ranks start, and again before each restart: it finishes the logs of the
  // earlier start, which are set aside when the rank's new log is opened.
  void begin(const wire::SpawnRanks& spawn);
  // Opens a rank's log, which lives until the next begin().
  RankLog* open(const wire::RankCommand& command, RankOutput pipes);
  // Ends a rank's log, and opens another one that appends to its files.
  RankLog* open_again(RankLog* ended, const wire::RankCommand& command, RankOutput pipes);
  // Call it when all ranks have ended: writes the remaining output. Calls back, maybe at once, when
  // the console has accepted it, or has accepted nothing for a while. Once per begin().
  void finish(std::function<void()> on_done);
  // Call it then. See Console::report_loss().
  bool report_lost_output() { return output_.report_loss(); }

 private:
  RankLog* open(const wire::RankCommand& command, RankOutput pipes, LogFile::Start next);
  bool idle() const { return output_.idle() && errors_.idle(); }
  void wait_for_consoles();
  void done();

  EventLoop& loop_;
  Console output_, errors_;
  ConsoleLines output_lines_, error_lines_;
  LineCopies output_copies_, error_copies_;
  LoopTimer limit_;
  wire::LogSettings settings_;
  std::vector<char> buffer_;
  std::optional<LogFolder> folder_;
  std::set<std::string> opened_;  // paths, in this run
  std::vector<std::unique_ptr<RankLog>> logs_;
  std::function<void()> on_done_;
};

}  // namespace fleet
