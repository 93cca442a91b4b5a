// Reads the file that FLEET_STEPS_FILE names, to which a program appends reports of its steps.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "node/step_lines.h"

namespace fleet {

// The file may be missing, grow by half lines, be truncated, removed or replaced. Not thread-safe.
class StepFile {
 public:
  // The most that one call reads. Of a file that grows faster, earlier lines are skipped.
  static constexpr size_t kMostBytes = 256 << 10;

  explicit StepFile(std::string path) : path_(std::move(path)) {}
  // The lines that were completed since the last call, with times between that call and the last
  // change of the file. now_ns: CLOCK_MONOTONIC; unix_ns: the same moment since 1970. `ended`: the
  // writer has, so that an incomplete line at the end is one too.
  std::vector<StepText> read(int64_t now_ns, int64_t unix_ns, bool ended = false);
  int64_t bytes() const { return bytes_; }  // that were read or skipped so far

 private:
  bool open();
  bool is_replaced(const struct stat& status) const;
  void read_new(struct stat* status, std::vector<StepText>* lines);
  void split(std::string_view text, std::vector<StepText>* lines);

  std::string path_;
  UniqueFd file_;
  int64_t offset_ = 0, bytes_ = 0;
  int64_t last_ns_ = 0;  // time of the last line
  std::string held_;     // an incomplete line
  bool skips_ = false;   // up to the end of a line
};

}  // namespace fleet
