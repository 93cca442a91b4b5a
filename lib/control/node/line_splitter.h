// Splits a stream of output into lines, and finds the progress bars in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace fleet {

// A line ends with "\n", "\r\n" or, as progress bars write, "\r". A line of more than 64 KiB is
// split; all parts except the last have no end.
class LineSplitter {
 public:
  static constexpr size_t kLongest = 64 << 10;

  // Adds output, which next() then splits. Call it after next() has returned false; `output` must
  // stay valid until next() returns false again.
  void add(std::string_view output);
  // The next whole line, with its end; false without one. Valid until the next call. A
  // trailing "\r" is held until the next byte arrives.
  bool next(std::string_view* line);
  // Text whose line is incomplete so far.
  std::string_view held() const { return given_ ? std::string_view() : held_; }
  // Returns and clears that text, at the end of the output.
  std::string rest();

 private:
  size_t line_end();

  std::string held_;           // start of a line that began in an earlier piece
  std::string_view input_;     // not yet returned
  size_t newline_ = kUnknown;  // in input_
  bool given_ = false;         // held_ was the last line
  static constexpr size_t kUnknown = static_cast<size_t>(-2);
};

// Keeps progress bars out of a log file. A bar is the text between a carriage return and "erase to
// the end of the line" (ESC [ K) on one line, as observe/progress.h draws it on a terminal. Other
// output passes unchanged, in pieces of any size.
class BarFilter {
 public:
  // The part of `output` (and of text held back before) that belongs in the file.
  std::string pass(std::string_view output);
  // The text held back, at the end of the output.
  std::string rest() { return std::exchange(held_, {}); }

 private:
  std::string held_;  // text from a carriage return on, until it is known whether it is a bar
};

// The last lines of a stream of output.
class LogTail {
 public:
  explicit LogTail(size_t bytes = 16384) : limit_(bytes) {}
  void add(std::string_view output);
  // The complete lines still held, as a terminal would show them (resolve_output()), without
  // trailing newlines.
  std::string shown(bool colors = false) const;

 private:
  size_t limit_;
  bool cut_ = false;  // the first held line is not complete
  std::string held_;
};

// The last `lines` lines of a text without a trailing newline.
std::string_view last_lines(std::string_view text, size_t lines);

}  // namespace fleet
