#include "node/line_collapse.h"

#include <algorithm>
#include <utility>

namespace fleet {

void LineCollapse::add(int rank, std::string_view text, Time now, WallTime written) {
  uint64_t& after = after_[rank];
  std::vector<uint64_t>& same = numbers_[text];
  const auto found = std::lower_bound(same.begin(), same.end(), after);
  if (found != same.end()) {
    waiting_[static_cast<size_t>(*found - first_)].line.ranks.insert(rank);
    after = *found + 1;
    return;
  }
  const uint64_t number = first_ + waiting_.size();
  const bool known = !same.empty();
  waiting_.push_back({{{rank}, std::string(text), written}, now + window_});
  bytes_ += text.size();
  after = number + 1;
  if (known) {
    same.push_back(number);
  } else {
    numbers_.erase(text);  // its key is the caller's
    numbers_[waiting_.back().line.text].push_back(number);
  }
}

bool LineCollapse::is_complete(const Entry& entry) const {
  return std::includes(entry.line.ranks.begin(), entry.line.ranks.end(), writing_.begin(),
                       writing_.end());
}

std::optional<LineCollapse::Line> LineCollapse::take(Time now) {
  if (waiting_.empty()) return std::nullopt;
  const Entry& next = waiting_.front();
  if (now < next.due && bytes_ <= most_bytes_ && !is_complete(next)) return std::nullopt;
  return take_any();
}

std::optional<LineCollapse::Line> LineCollapse::take_any() {
  if (waiting_.empty()) return std::nullopt;
  Line& next = waiting_.front().line;
  const auto same = numbers_.find(next.text);
  // The key is a view of the first that waits with this text: this one.
  std::vector<uint64_t> others = std::move(same->second);
  numbers_.erase(same);
  others.erase(others.begin());
  if (!others.empty()) {
    const std::string& key = waiting_[static_cast<size_t>(others.front() - first_)].line.text;
    numbers_.emplace(key, std::move(others));
  }
  bytes_ -= next.text.size();
  Line line = std::move(next);
  waiting_.pop_front();
  ++first_;
  return line;
}

std::optional<LineCollapse::Time> LineCollapse::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front().due;
}

std::string ranges_of(const std::set<int>& numbers) {
  std::string text;
  for (auto number = numbers.begin(); number != numbers.end();) {
    const int first = *number;
    int last = first;
    while (++number != numbers.end() && *number == last + 1) last = *number;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  }
  return text;
}

}  // namespace fleet
