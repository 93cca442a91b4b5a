// The lines of several ranks on one console, and copies of some.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "node/console.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"

namespace fleet {

// Merges equal lines of many ranks. A line waits a moment for equal lines of other ranks. Every
// rank's lines keep their order. Has no clock of its own.
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
