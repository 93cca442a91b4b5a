#include "node/console_lines.h"

#include <ctime>
#include <utility>

#include "base/ranges.h"

namespace fleet {

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
  timer_.expires_at(*due);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
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

}  // namespace fleet
