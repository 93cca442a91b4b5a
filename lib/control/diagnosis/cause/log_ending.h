// The last lines of a program's log. Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

// Refers to the log, which must outlive it.
class LogEnding {
 public:
  explicit LogEnding(std::string_view log);  // as resolve_output() returns it

  size_t size() const { return lines_.size(); }
  std::string_view operator[](size_t line) const { return lines_[line]; }
  // The number of lines that the program printed after `line`. An error is followed by lines that
  // do not count, however many: blank and indented ones, frames, boxes, and the summary of a
  // tracker.
  size_t lines_after(size_t line) const { return after_[line]; }
  // Whether it begins with the tag of the last line: "wandb: ", "[neptune] ", "COMET INFO: ".
  bool is_tagged(size_t line) const;
  // The nearest line with a letter or digit after or before `line`; size() if none is found.
  size_t next_text(size_t line) const;
  size_t previous_text(size_t line) const;
  // `text`, the end of `line`. If that ends with a colon, the next line is a part of it. `margin`:
  // a prefix of all lines of the error.
  std::string whole(size_t line, std::string_view text, std::string_view margin = {}) const;

 private:
  bool is_epilogue(size_t line) const;

  std::vector<std::string_view> lines_;
  std::vector<size_t> after_;
  std::string_view tag_;  // tag of the last line; "" if it has none
};

bool is_indented(std::string_view line);
// Without the spaces and the lines of a box or comment around it.
std::string_view unframed(std::string_view line);
// The part before the message of an exception: "torch.cuda.OutOfMemoryError" of
// "torch.cuda.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt"; "" of other lines.
std::string_view exception_class(std::string_view line);

}  // namespace fleet
