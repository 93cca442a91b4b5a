#include "daemon/console_output.h"

#include <unistd.h>

#include <algorithm>

namespace fleet {

namespace {

// Whether a line of standard error belongs to a rank: "[rank 3 10.0.0.2] ...", "[ranks 0-6] ...",
// possibly after a time stamp. No line of a launcher starts like this.
bool is_of_rank(std::string_view line) {
  constexpr size_t kStamp = std::string_view("2026-11-20T15:04:05.123+01:00 ").size();
  if (line.size() > kStamp && line[4] == '-' && line[10] == 'T' && line[kStamp - 1] == ' ') {
    line.remove_prefix(kStamp);
  }
  return line.starts_with("[rank ") || line.starts_with("[ranks ");
}

// The position after the last complete line; a "\r" at the end may be part of "\r\n".
size_t end_of_lines(std::string_view text) {
  const size_t newline = text.rfind('\n');
  const size_t bar = text.size() < 2 ? std::string_view::npos : text.rfind('\r', text.size() - 2);
  return std::max(newline + 1, bar + 1);
}

}  // namespace

ConsoleOutput::ConsoleOutput(boost::asio::io_context& loop, bool several, Kind kind)
    : output_(loop, STDOUT_FILENO), errors_(loop, STDERR_FILENO), several_(several), kind_(kind) {}

void ConsoleOutput::on_drained(const std::function<void()>& callback) {
  output_.on_drained(callback);
  errors_.on_drained(callback);
}

void ConsoleOutput::write(const std::string& node, bool error, std::string_view text) {
  std::string safe;
  if (kind_ == Kind::kHistory && output_.is_terminal()) {
    const bool colors = wants_colors(STDOUT_FILENO);
    text = safe = filters_.try_emplace({node, error}, colors).first->second.pass(text);
  }
  if (!several_) return console(error).write(text);
  std::string& partial = partial_lines_[{node, error}];
  partial += text;
  const size_t end = end_of_lines(partial);
  if (end == 0) return;
  write_lines(node, error, std::string_view(partial).substr(0, end));
  partial.erase(0, end);
}

void ConsoleOutput::write_lines(const std::string& node, bool error, std::string_view text) {
  if (!error) return output_.write(text);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size() - 1);
    const size_t size = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
    const std::string_view line = text.substr(0, size);
    console(true).write(is_of_rank(line) ? std::string(line)
                                         : "[" + node + "] " + std::string(line));
    text.remove_prefix(size);
  }
}

void ConsoleOutput::flush() {
  for (auto& [source, text] : partial_lines_) {
    if (!text.empty()) write_lines(source.first, source.second, text + "\n");
    text.clear();
  }
}

}  // namespace fleet
