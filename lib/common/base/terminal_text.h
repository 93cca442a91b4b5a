// Makes the output of other programs and people safe to show on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/terminal_parser.h"

namespace fleet {

// Whether to use colours on this descriptor: no with NO_COLOR; yes with FORCE_COLOR; else on a
// terminal whose TERM is neither unset nor "dumb".
bool wants_colors(int fd);

// The lines that a terminal would show for `output`: carriage returns, tabs and cursor movement are
// resolved; titles, clipboard and everything else are removed. With `colors` colours stay, and each
// line begins and ends with none active. No newline at the end. Uses at most a few MiB of memory.
std::string resolve_output(std::string_view output, bool colors = false);

// `text` with control characters written out ("\x1b", "\x07"), except newlines, tabs and, with
// `colors`, colours.
std::string escape_controls(std::string_view text, bool colors = false);

// An untrusted name, for a line of output: escaped, and cut if it has more than `most` columns.
std::string shown_name(std::string_view name, size_t most = 64);

// Like shown_name(), for a path, for messages.
inline std::string shown_path(std::string_view path) { return shown_name(path, 4096); }

// Cuts `text` to `columns` and ends it with "..." if it was longer.
std::string cut_to_columns(std::string_view text, size_t columns);
// Likewise, but cuts the front: the end of a path says more.
std::string cut_front_to_columns(std::string_view text, size_t columns);
size_t columns_of_text(std::string_view text);

// Filters output that is passed on to a terminal as it arrives: keeps text, newlines, carriage
// returns, tabs, with `colors` colours, and "erase to the end of the line"; drops everything else.
// Not thread-safe.
class TerminalFilter : private TerminalSink {
 public:
  explicit TerminalFilter(bool colors) : colors_(colors), parser_(*this) {}
  TerminalFilter(const TerminalFilter&) = delete;
  TerminalFilter& operator=(const TerminalFilter&) = delete;
  std::string pass(std::string_view output);

 private:
  void character(std::string_view utf8, char32_t code) override;
  void control(char c) override;
  void sequence(std::string_view parameters, char final) override;

  bool colors_;
  TerminalParser parser_;
  std::string passed_;
};

}  // namespace fleet
