// Whole lines with a prefix each, so that several ranks can share a console.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

class LinePrefix {
 public:
  explicit LinePrefix(std::string prefix) : prefix_(std::move(prefix)) {}
  // The lines that are whole now. A line ends with a newline or, as progress bars write, with a
  // carriage return; one of more than 64 KiB is cut into several.
  std::string pass(std::string_view output);
  // What is left at the end, as a line.
  std::string rest();

 private:
  std::string prefix_, held_;
};

}  // namespace fleet
