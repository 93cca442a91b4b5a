// The lines of several ranks on one console.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "node/console.h"
#include "node/line_collapse.h"
#include "node/wire.h"

namespace fleet {

// "2026-11-20T15:04:05.123+01:00 ", in the time zone of this machine.
class Stamp {
 public:
  using WallTime = std::chrono::system_clock::time_point;
  std::string_view at(WallTime time);

 private:
  std::chrono::seconds second_{-1};
  std::string text_;
};

// Not thread safe.
class ShownLines {
 public:
  ShownLines(boost::asio::io_context& loop, Console& console) : console_(console), timer_(loop) {}
  // Before lines come, and again where ranks are started again.
  void begin(const LogSettings& settings, const ShownStream& stream);
  // `label`: before the rank's lines, where LogSettings::labels; empty: "[rank 3] ".
  void begin_rank(int rank, const std::string& label = {});
  void end_rank(int rank);
  // A line with its end, or a part without; the console has it after pass_on().
  void add(int rank, std::string_view line, bool labelled = true);
  void pass_on();
  // Everything that still waits for equal lines.
  void flush();

 private:
  void write(std::span<const int> ranks, std::string_view line, Stamp::WallTime time,
             bool labelled = true);
  void write_label(std::span<const int> ranks);
  void take_due(LineCollapse::Time now);

  Console& console_;
  boost::asio::steady_timer timer_;
  LogSettings settings_;
  std::optional<LineCollapse> collapse_;
  std::optional<LineCollapse::Time> timer_at_;
  Stamp stamp_;
  std::map<int, std::string> labels_;  // by rank, where they are not the usual ones
  std::string batch_;
  // Of the lines that come until the next pass_on().
  std::optional<LineCollapse::Time> now_;
  Stamp::WallTime wall_now_{};
  bool behind_bar_ = false;  // the last line ended with "\r"
};

}  // namespace fleet
