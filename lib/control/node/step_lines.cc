#include "node/step_lines.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fleet {
namespace {

constexpr std::string_view kBegin = R"({"fleetrun":)";

}  // namespace

void StepLineFinder::scan(std::string_view output, int64_t now_ns) {
  if (output.empty()) return;
  size_t at = held_.empty() ? 0 : collect(output, 0, now_ns);
  while ((at = output.find('{', at)) != output.npos) {
    const std::string_view begin = output.substr(at, kBegin.size());
    if (!kBegin.starts_with(begin)) {
      ++at;
      continue;
    }
    const char before = at > 0 ? output[at - 1] : last_;
    begins_line_ = before == '\n' || before == '\r';
    at = collect(output, at, now_ns);
  }
  last_ = output.back();
}

// Adds to held_ from `at` on; returns where to continue the search.
size_t StepLineFinder::collect(std::string_view output, size_t at, int64_t now_ns) {
  for (; at < output.size(); ++at) {
    const char c = output[at];
    if (held_.size() < kBegin.size() && c != kBegin[held_.size()]) {  // another object
      held_.clear();
      depth_ = 0;
      quoted_ = false;
      return at;
    }
    if (c == '\n' || held_.size() == kLongest) {
      end_object(now_ns);
      return at;
    }
    held_ += c;
    if (quoted_) {
      quoted_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '"') {
      quoted_ = true;
    } else if (c == '{') {
      ++depth_;
    } else if (c == '}' && --depth_ == 0) {
      end_object(now_ns);
      return at + 1;
    }
  }
  return at;
}

void StepLineFinder::end_object(int64_t now_ns) {
  found_bytes_ += held_.size();
  found_.push_back({std::exchange(held_, {}), now_ns, begins_line_});
  depth_ = 0;
  quoted_ = escaped_ = false;
  while (found_bytes_ > kMostKept) {
    found_bytes_ -= found_.front().text.size();
    found_.pop_front();
  }
}

std::vector<StepText> StepLineFinder::take() {
  found_bytes_ = 0;
  std::vector<StepText> all(std::make_move_iterator(found_.begin()),
                            std::make_move_iterator(found_.end()));
  found_.clear();
  return all;
}

}  // namespace fleet
