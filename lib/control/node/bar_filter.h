// Keeps progress bars out of a log file.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace fleet {

// A bar is the text between a carriage return and "erase to the end of the line" (ESC [ K) on one
// line, as observe/progress.h draws it on a terminal. Other output passes unchanged, in pieces of
// any size.
class BarFilter {
 public:
  // The part of `output` (and of text held back before) that belongs in the file.
  std::string pass(std::string_view output);
  // The text held back, at the end of the output.
  std::string rest() { return std::exchange(held_, {}); }

 private:
  std::string held_;  // text from a carriage return on, until it is known whether it is a bar
};

}  // namespace fleet
