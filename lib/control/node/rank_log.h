// A rank's output: from its pipes to its log files and the console.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "node/bar_filter.h"
#include "node/console.h"
#include "node/console_lines.h"
#include "node/line_copies.h"
#include "node/line_splitter.h"
#include "node/log_file.h"
#include "node/log_tail.h"
#include "node/spawn.h"

namespace fleet {

// The destination of a stream of the ranks: raw, or line by line.
struct ConsoleTarget {
  Console& console;
  ConsoleLines& lines;
};

// State shared by the logs of a node's ranks; must outlive them.
struct LogContext {
  boost::asio::io_context& loop;
  ConsoleTarget output, errors;  // may be the same place
  LineCopies &output_copies, &error_copies;
  const wire::LogSettings& settings;
  std::span<char> buffer;  // read buffer
};

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
  // Call it when the console has room again.
  void resume();
  int64_t bytes() const { return bytes_; }  // read so far
  // Its last lines as a terminal would show them, with their colours.
  std::string shown() const;

 private:
  struct Stream {
    Stream(boost::asio::posix::stream_descriptor end, const ConsoleTarget& where, LineCopies& kept)
        : pipe(std::move(end)), target(where), copies(kept) {}
    boost::asio::posix::stream_descriptor pipe;
    ConsoleTarget target;
    LineCopies& copies;
    size_t file = 0;  // of files_
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
  Stamp stamp_;
  Stamp::WallTime read_at_{};
  int64_t bytes_ = 0;
};

}  // namespace fleet
