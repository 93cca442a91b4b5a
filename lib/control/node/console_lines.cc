#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/ranges.h"
#include "node/console.h"

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
  if (now < next.due && waiting_.size() <= max_lines_ && !is_complete(next)) return std::nullopt;
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

std::string_view Stamp::at(WallTime time) {
  using namespace std::chrono;
  const auto since = duration_cast<milliseconds>(time.time_since_epoch());
  const auto second = floor<seconds>(since);
  if (second != second_ || text_.empty()) {
    second_ = second;
    const std::time_t whole = second.count();
    std::tm parts = {};
    ::localtime_r(&whole, &parts);
    char text[48];
    // "+0100" becomes "+01:00".
    size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000%z", &parts);
    text_.assign(text, size);
    text_.insert(text_.size() - 2, ":");
    text_ += ' ';
  }
  const auto fraction = static_cast<int>((since - second).count());
  text_[20] = static_cast<char>('0' + fraction / 100);
  text_[21] = static_cast<char>('0' + fraction / 10 % 10);
  text_[22] = static_cast<char>('0' + fraction % 10);
  return text_;
}

void ConsoleLines::begin(const wire::LogSettings& settings, const wire::ConsoleStream& stream) {
  flush();
  settings_ = settings;
  labels_.clear();
  collapse_.reset();
  if (stream.collapse_ms() > 0) {
    collapse_.emplace(std::chrono::milliseconds(stream.collapse_ms()));
  }
}

void ConsoleLines::begin_rank(int rank, const std::string& label) {
  if (!label.empty()) labels_[rank] = label;
  if (collapse_) collapse_->begin(rank);
}

void ConsoleLines::end_rank(int rank) {
  if (collapse_) collapse_->end(rank);
  pass_on();
}

void ConsoleLines::add(int rank, std::string_view line, bool labelled) {
  if (!now_) {
    now_ = std::chrono::steady_clock::now();
    wall_now_ = std::chrono::system_clock::now();
  }
  if (!collapse_) return write({&rank, 1}, line, wall_now_, labelled);
  collapse_->add(rank, line, *now_, wall_now_);
  take_due(*now_);
}

void ConsoleLines::write_label(std::span<const int> ranks) {
  const auto own = labels_.find(ranks.front());
  if (ranks.size() == 1 && own != labels_.end()) {
    batch_ += own->second;
    return;
  }
  batch_ += ranks.size() > 1 ? "[ranks " : "[rank ";
  batch_ += ranges_text(ranks);
  if (!settings_.node().empty()) batch_ += ' ' + settings_.node();
  batch_ += "] ";
}

void ConsoleLines::write(std::span<const int> ranks, std::string_view line, Stamp::WallTime time,
                         bool labelled) {
  // Erases the rest of a longer bar after the line.
  if (std::exchange(after_bar_, line.ends_with('\r')) && console_.is_terminal()) {
    batch_ += "\033[K";
  }
  if (settings_.stamp_console()) batch_ += stamp_.at(time);
  if (settings_.labels() && labelled) write_label(ranks);
  batch_ += line;
  if (!line.ends_with('\n') && !after_bar_) batch_ += '\n';
}

void ConsoleLines::take_due(LineCollapse::Time now) {
  while (const auto line = collapse_->take(now)) write(line->ranks, line->text, line->written);
}

void ConsoleLines::pass_on() {
  now_.reset();
  if (collapse_) take_due(std::chrono::steady_clock::now());
  if (!batch_.empty()) console_.write(std::exchange(batch_, {}));
  const auto due = collapse_ ? collapse_->next_due() : std::nullopt;
  if (!due || timer_at_) return;  // one timer at a time: it checks again when it fires
  timer_at_ = due;
  timer_.at(*due, [this] {
    timer_at_.reset();
    pass_on();
  });
}

void ConsoleLines::flush() {
  while (collapse_) {
    const auto line = collapse_->take_any();
    if (!line) break;
    write(line->ranks, line->text, line->written);
  }
  pass_on();
}

void LineCopies::begin(const wire::CopiedLines& wanted) {
  wanted_ = wanted;
  file_.reset();
  if (!this->wanted()) return;
  try {
    file_ = open_owned_file(wanted_.path(), O_WRONLY | O_CREAT | O_APPEND);
  } catch (const Error& error) {
    warn_once(error.failure());
  }
}

void LineCopies::offer(std::string_view label, std::string_view line) {
  const bool matches = std::any_of(
      wanted_.filters().begin(), wanted_.filters().end(),
      [&](const std::string& text) { return line.find(text) != std::string_view::npos; });
  if (!matches || !file_) return;
  std::string copy;
  copy.append(label).append(line);
  if (!copy.ends_with('\n')) copy += '\n';
  if (::write(file_.get(), copy.data(), copy.size()) < 0) warn_once(std::strerror(errno));
}

void LineCopies::warn_once(const std::string& reason) {
  if (std::exchange(warned_, true)) return;
  spdlog::warn("{}: cannot be written: {}", wanted_.path(), reason);
}

}  // namespace fleet
