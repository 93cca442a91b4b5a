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
#include "rendezvous/control_messages.h"

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

// Not thread-safe.
class ConsoleLines {
 public:
  ConsoleLines(boost::asio::io_context& loop, Console& console) : console_(console), timer_(loop) {}
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
  boost::asio::steady_timer timer_;
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

}  // namespace fleet
