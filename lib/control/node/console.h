// Standard output or standard error, written without blocking the loop; the lines of several ranks
// on it, and copies of some.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Reopens the pipe or terminal behind `fd` for non-blocking writes; -1 if it is something else or
// cannot be reopened. The shared file description stays unchanged.
int open_nonblocking(int fd);

// Whether both refer to the same terminal, pipe or file.
bool same_destination(int fd, int other);

// A stopped terminal or a slow reader must not keep the guardian from killing. Lines of at most
// PIPE_BUF bytes are written atomically, so other processes' output appears between lines.
class Console {
 public:
  Console(EventLoop& loop, int fd);

  // If true, whole lines are dropped while too much output waits, and a line reports their number.
  // Otherwise (the default) full() tells the producer to pause until on_drained.
  void drop_when_full(bool drop) { drops_ = drop; }
  // For that line: where the user can read them instead.
  void set_log_hint(std::string where) { log_hint_ = std::move(where); }

  void write(std::string_view output);
  bool full() const { return !drops_ && waiting() > kFull; }
  bool idle() const { return waiting() == 0 && !skipping_; }
  // Whether lines written now are dropped; count_dropped() then counts them instead.
  bool drops() const { return skipping_ && skipped_whole_ && waiting() >= kFull / 2; }
  void count_dropped(int64_t lines, int64_t bytes) {
    skipped_lines_ += lines;
    skipped_bytes_ += bytes;
  }
  bool is_terminal() const { return terminal_; }
  // Logs an error, once, if wanted output was lost, for example on a full disk.
  // Returns whether it was.
  bool report_loss();
  size_t waiting() const { return waiting_.size() - written_; }  // bytes
  int64_t taken() const { return taken_; }                       // bytes written
  // Called when it is no longer full, and when it has become idle.
  void on_drained(std::function<void()> callback) { on_drained_ = std::move(callback); }

 private:
  static constexpr size_t kFull = 1 << 20;
  std::string_view skip(std::string_view output);
  void report_skipped();
  void pump();
  size_t next_piece() const;
  bool write_piece();
  void give_up(int error);
  void refuse(int error);
  bool is_readers_loss(int error) const;

  LoopDescriptor out_;
  std::string waiting_, log_hint_;
  size_t written_ = 0;  // bytes in waiting_
  int64_t taken_ = 0;
  int lost_ = 0, refused_ = 0;  // errno of a loss, and of the constructor; 0: none
  bool loss_reported_ = false;
  // pollable_: epoll accepts it. own_: writes never block.
  bool terminal_ = false, pollable_ = true, own_ = false;
  bool waits_ = false, broken_ = false;
  bool drops_ = false, skipping_ = false;
  // The written, or skipped, text ends with a newline.
  bool shown_whole_ = true, skipped_whole_ = true;
  int64_t skipped_lines_ = 0, skipped_bytes_ = 0;
  std::function<void()> on_drained_;
};

// Merges identical lines of many ranks. A line waits a moment for others like it. Every rank's
// lines keep their order. Has no clock of its own.
class LineCollapse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  struct Line {
    std::vector<int> ranks;  // that have written it, in ascending order
    std::string text;
    WallTime written;  // by the first of them
  };

  // At most `max_lines` lines wait.
  explicit LineCollapse(std::chrono::milliseconds window, size_t max_lines = 1024)
      : window_(window), max_lines_(max_lines) {}
  // Adds a rank to wait for; end() removes it.
  void begin(int rank) { writing_.insert(rank); }
  void end(int rank) { writing_.erase(rank); }
  void add(int rank, std::string_view text, Time now, WallTime written);
  // The next line that need not wait any longer.
  std::optional<Line> take(Time now);
  // The next line, even if it could wait longer.
  std::optional<Line> take_any();
  // When take() has another line; nullopt if no line waits.
  std::optional<Time> next_due() const;

 private:
  struct Entry {
    Line line;
    Time due;
    size_t hash;
    uint64_t next = 0;  // number of the next line with this hash; 0: none
  };
  // Numbers of waiting lines with the same hash.
  struct Chain {
    uint64_t first, last;
  };
  struct NoHash {
    size_t operator()(size_t hash) const { return hash; }
  };
  Entry& entry(uint64_t number) { return waiting_[static_cast<size_t>(number - first_)]; }
  bool is_complete(const Entry& entry) const;

  std::chrono::milliseconds window_;
  size_t max_lines_;
  std::set<int> writing_;
  std::deque<Entry> waiting_;
  uint64_t first_ = 1;                       // number of waiting_.front()
  std::unordered_map<int, uint64_t> after_;  // a rank's next line has this number or a higher one
  std::unordered_map<size_t, Chain, NoHash> chains_;
};

// "2026-11-20T15:04:05.123+01:00 ", in the time zone of this machine.
class Stamp {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  std::string_view at(WallTime time);

 private:
  std::chrono::seconds second_{-1};
  std::string text_;
};

// Not thread-safe.
class ConsoleLines {
 public:
  ConsoleLines(EventLoop& loop, Console& console) : console_(console), timer_(loop) {}
  // Call it before lines arrive, and again when ranks restart.
  void begin(const wire::LogSettings& settings, const wire::ConsoleStream& stream);
  // `label`: before the rank's lines, if LogSettings::labels; empty: "[rank 3] ".
  void begin_rank(int rank, const std::string& label = {});
  void end_rank(int rank);
  // Adds a line with its end, or a part without; pass_on() writes it to the console.
  void add(int rank, std::string_view line, bool labelled = true);
  void pass_on();
  // Writes all lines that still wait for equal ones.
  void flush();

 private:
  void write(std::span<const int> ranks, std::string_view line, Stamp::WallTime time,
             bool labelled = true);
  void write_label(std::span<const int> ranks);
  void take_due(LineCollapse::Time now);

  Console& console_;
  LoopTimer timer_;
  wire::LogSettings settings_;
  std::optional<LineCollapse> collapse_;
  std::optional<LineCollapse::Time> timer_at_;
  Stamp stamp_;
  std::map<int, std::string> labels_;  // by rank, if they are not the default ones
  std::string batch_;
  // Time of the lines until the next pass_on().
  std::optional<LineCollapse::Time> now_;
  Stamp::WallTime wall_now_{};
  bool after_bar_ = false;  // the last line ended with "\r"
};

// Copies of selected lines: --duplicate_stdout_filters and --duplicate_stderr_filters.
// Not thread-safe.
class LineCopies {
 public:
  // Opens the file for appending, if there are filters. Reports a failure to open or write once and
  // continues: the job matters more than a copy.
  void begin(const wire::CopiedLines& wanted);
  bool wanted() const { return !wanted_.filters().empty(); }
  // Keeps the line, with its label in front, if it contains one of the filters.
  void offer(std::string_view label, std::string_view line);

 private:
  void warn_once(const std::string& reason);

  wire::CopiedLines wanted_;
  UniqueFd file_;
  bool warned_ = false;
};

}  // namespace fleet
