// Finds in a rank's output, which passes unchanged, what the program reports of its steps: objects
// {"fleetrun": {...}} (reported_steps.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

// A text that should be a report of a step.
struct StepText {
  std::string text;
  int64_t at_ns = 0;      // when it was written, if known; CLOCK_MONOTONIC
  bool is_report = true;  // false: it may be a quotation of one, such as a line of a traceback
};

// Costs a memchr() where the output has no brace. Not thread-safe.
class StepLineFinder {
 public:
  // An object that is longer, or whose line ends within it, is a damaged report.
  static constexpr size_t kLongest = 16 << 10;
  // Of reports that are not taken, the newest ones that have at most this many bytes are kept.
  static constexpr size_t kMostKept = 256 << 10;

  // Reads the next piece of the output, cut anywhere. An object may follow other text on its line,
  // such as a progress bar.
  void scan(std::string_view output, int64_t now_ns);
  // The reports found since the last call.
  std::vector<StepText> take();

 private:
  size_t collect(std::string_view output, size_t at, int64_t now_ns);
  void end_object(int64_t now_ns);

  std::string held_;     // start of an object that is incomplete so far
  int depth_ = 0;        // open braces in it
  bool quoted_ = false;  // its end is within a string
  bool escaped_ = false;
  bool begins_line_ = true;
  char last_ = '\n';  // the last character of the output so far
  std::deque<StepText> found_;
  size_t found_bytes_ = 0;
};

}  // namespace fleet
