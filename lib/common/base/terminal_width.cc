#include "base/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/terminal_text.h"

namespace fleet {

int terminal_width(int fd) {
  winsize size{};
  if (!::isatty(fd)) return 0;
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

size_t help_width() {
  constexpr int kUsual = 80, kLeast = 40;
  const int width = terminal_width(STDOUT_FILENO);
  return static_cast<size_t>(width == 0 ? kUsual : std::max(width, kLeast));
}

std::string wrapped_text(std::string_view line, size_t indent, size_t columns) {
  std::string text, current(line.substr(0, indent));
  bool has_word = false;  // behind the indent
  line.remove_prefix(std::min(indent, line.size()));
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (has_word && columns_of_text(current) + 1 + columns_of_text(word) > columns) {
      text += current + "\n";
      current.assign(indent, ' ');
      has_word = false;
    }
    if (has_word) current += ' ';
    current += word;
    has_word = true;
    at = end + 1;
  }
  return text + current;
}

std::string wrapped_lines(std::string_view text, size_t columns) {
  std::string wrapped;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    wrapped += columns_of_text(line) > columns ? wrapped_text(line, 0, columns) : std::string(line);
    if (end < text.size()) wrapped += '\n';
    at = end + 1;
  }
  return wrapped;
}

}  // namespace fleet
