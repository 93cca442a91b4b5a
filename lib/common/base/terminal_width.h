// The width of a terminal, and texts that fit it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet {

// Columns of the terminal behind a descriptor; 0: it is none.
int terminal_width(int fd);
// The width for help texts on standard output: the terminal's, at least 40; 80 if it is none.
size_t help_width();

// The line broken at blanks so that none is longer than `columns`, unless a word is. Later lines
// begin with `indent` blanks. The first `indent` characters stay as they are.
std::string wrapped_text(std::string_view line, size_t indent, size_t columns);
// Each line of the text, wrapped without an indent.
std::string wrapped_lines(std::string_view text, size_t columns);

}  // namespace fleet
