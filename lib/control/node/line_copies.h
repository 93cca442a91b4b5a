// Copies of selected lines: --duplicate_stdout_filters and --duplicate_stderr_filters.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "rendezvous/control_messages.h"

namespace fleet {

// Not thread-safe.
class LineCopies {
 public:
  // Opens the file for appending, if there are filters. Reports a failure to open or write once and
  // continues: the job matters more than a copy.
  void begin(const wire::CopiedLines& wanted);
  bool wanted() const { return !wanted_.filters().empty(); }
  // Keeps the line, with its label in front, if it contains one of the filters.
  void offer(std::string_view label, std::string_view line);

 private:
  void warn_once(const std::string& reason);

  wire::CopiedLines wanted_;
  UniqueFd file_;
  bool warned_ = false;
};

}  // namespace fleet
