// Lines that are kept once more: --duplicate_stdout_filters and --duplicate_stderr_filters.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "node/wire.h"

namespace fleet {

// Not thread safe.
class LineCopies {
 public:
  // Opens the file for appending, where there are filters. What cannot be opened or written is told
  // once: the job is worth more than a copy.
  void begin(const CopiedLines& wanted);
  bool wanted() const { return !wanted_.filters.empty(); }
  // Keeps the line, behind its label, where it holds one of the texts.
  void offer(std::string_view label, std::string_view line);

 private:
  void complain(const std::string& reason);

  CopiedLines wanted_;
  UniqueFd file_;
  bool complained_ = false;
};

}  // namespace fleet
