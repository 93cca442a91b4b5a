// Splits a stream of output into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet {

// A line ends with "\n", "\r\n" or, as progress bars write, "\r". A line of more than 64 KiB is
// split; all parts except the last have no end.
class LineSplitter {
 public:
  static constexpr size_t kLongest = 64 << 10;

  // Adds output, which next() then splits. Call it after next() has returned false; `output` must
  // stay valid until next() returns false again.
  void add(std::string_view output);
  // The next whole line, with its end; false if there is none. Valid until the next call. A
  // trailing "\r" is held until the next byte arrives.
  bool next(std::string_view* line);
  // Text without an end so far.
  std::string_view held() const { return given_ ? std::string_view() : held_; }
  // Returns and clears that text, at the end of the output.
  std::string rest();

 private:
  size_t line_end();

  std::string held_;           // of a line that began in an earlier piece
  std::string_view input_;     // not yet returned
  size_t newline_ = kUnknown;  // in input_
  bool given_ = false;         // held_ was the last line
  static constexpr size_t kUnknown = static_cast<size_t>(-2);
};

}  // namespace fleet
