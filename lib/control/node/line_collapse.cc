#include "node/line_collapse.h"

#include <algorithm>
#include <utility>

namespace fleet {

void LineCollapse::add(int rank, std::string_view text, Time now, WallTime written) {
  uint64_t& after = after_[rank];
  const size_t hash = std::hash<std::string_view>{}(text);
  const auto chain = chains_.find(hash);
  for (uint64_t number = chain == chains_.end() ? 0 : chain->second.first; number > 0;) {
    Entry& same = entry(number);
    if (number >= after && same.line.text == text) {
      std::vector<int>& ranks = same.line.ranks;
      ranks.insert(std::lower_bound(ranks.begin(), ranks.end(), rank), rank);
      after = number + 1;
      return;
    }
    number = same.next;
  }
  const uint64_t number = first_ + waiting_.size();
  waiting_.push_back({{{rank}, std::string(text), written}, now + window_, hash});
  after = number + 1;
  if (chain == chains_.end()) {
    chains_.emplace(hash, Chain{number, number});
  } else {
    entry(chain->second.last).next = number;
    chain->second.last = number;
  }
}

bool LineCollapse::is_complete(const Entry& entry) const {
  return std::includes(entry.line.ranks.begin(), entry.line.ranks.end(), writing_.begin(),
                       writing_.end());
}

std::optional<LineCollapse::Line> LineCollapse::take(Time now) {
  if (waiting_.empty()) return std::nullopt;
  const Entry& next = waiting_.front();
  if (now < next.due && waiting_.size() <= most_lines_ && !is_complete(next)) return std::nullopt;
  return take_any();
}

std::optional<LineCollapse::Line> LineCollapse::take_any() {
  if (waiting_.empty()) return std::nullopt;
  Entry& next = waiting_.front();
  const auto chain = chains_.find(next.hash);  // the chain that begins with it
  if (next.next > 0) {
    chain->second.first = next.next;
  } else {
    chains_.erase(chain);
  }
  Line line = std::move(next.line);
  waiting_.pop_front();
  ++first_;
  return line;
}

std::optional<LineCollapse::Time> LineCollapse::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front().due;
}

}  // namespace fleet
