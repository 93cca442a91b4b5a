// Output, as it comes in pieces, into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet {

// A line ends with "\n", "\r\n" or, as progress bars write, "\r". One of more than 64 KiB is cut:
// its parts but the last have no end.
class LineSplitter {
 public:
  static constexpr size_t kLongest = 64 << 10;

  // To be taken apart with next(), which has returned false since the last add(). `output` must
  // stay until it does so again.
  void add(std::string_view output);
  // The next line that is whole, with its end; false where there is none. Valid until the next
  // call. A "\r" at the end of all output is held until it is known what follows.
  bool next(std::string_view* line);
  // What no end has come for.
  std::string_view held() const { return given_ ? std::string_view() : held_; }
  // Gives that up, at the end of the output.
  std::string rest();

 private:
  size_t line_end();

  std::string held_;           // of a line that began in an earlier piece
  std::string_view input_;     // not yet given
  size_t newline_ = kUnknown;  // in input_
  bool given_ = false;         // held_ was the last line
  static constexpr size_t kUnknown = static_cast<size_t>(-2);
};

}  // namespace fleet
