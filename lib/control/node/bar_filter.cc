#include "node/bar_filter.h"

namespace fleet {
namespace {

constexpr std::string_view kEraseLine = "\033[K";
constexpr size_t kLongestBar = 4096;  // bytes; longer output is not a bar

}  // namespace

std::string BarFilter::pass(std::string_view output) {
  std::string passed;
  held_ += output;
  for (;;) {
    const size_t start = held_.find('\r');
    passed += held_.substr(0, start);
    if (start == std::string::npos) {
      held_.clear();
      return passed;
    }
    held_.erase(0, start);
    const size_t line_end = held_.find('\n');
    const size_t erase = held_.substr(0, line_end).find(kEraseLine);
    if (erase != std::string::npos) {
      held_.erase(0, erase + kEraseLine.size());
    } else if (line_end != std::string::npos || held_.size() > kLongestBar) {
      passed += '\r';
      held_.erase(0, 1);
    } else {
      return passed;
    }
  }
}

}  // namespace fleet
