// Keeps a progress bar out of a log file.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace fleet {

// A bar is what stands between a carriage return and "erase to the end of the line" (ESC [ K), on
// one line, as observe/progress.h draws it on a terminal. Anything else passes through unchanged,
// however it is cut into pieces.
class BarFilter {
 public:
  // What of `output` (and of what was held back before) belongs into the file.
  std::string pass(std::string_view output);
  // What was held back, at the end of the output.
  std::string rest() { return std::exchange(held_, {}); }

 private:
  std::string held_;  // from a carriage return on, until it is known what it is
};

}  // namespace fleet
