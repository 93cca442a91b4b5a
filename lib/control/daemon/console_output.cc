#include "daemon/console_output.h"

#include <unistd.h>

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

std::string labelled(const std::string& node, bool error, std::string_view line) {
  return (error && !is_of_rank(line) ? "[" + node + "] " : "") + std::string(line);
}

}  // namespace

ConsoleOutput::ConsoleOutput(EventLoop& loop, bool several, Kind kind)
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
  LineSplitter& lines = lines_[{node, error}];
  lines.add(text);
  std::string whole;
  for (std::string_view line; lines.next(&line);) whole += labelled(node, error, line);
  console(error).write(whole);
}

void ConsoleOutput::flush() {
  for (auto& [source, lines] : lines_) {
    const std::string rest = lines.rest();
    if (rest.empty()) continue;
    console(source.second).write(labelled(source.first, source.second, rest + "\n"));
  }
}

}  // namespace fleet
