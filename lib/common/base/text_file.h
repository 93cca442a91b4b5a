// Text files that people write, with any editor of any system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fleet {

// The size of the mark of UTF-8 that a text begins with: 3, or 0 without one. kUsage naming
// `where` for text in UTF-16 or UTF-32, with or without a mark: Excel, Notepad and PowerShell write
// such files. `start`: the first bytes of the text, at least four if it has as many.
size_t size_of_mark(std::string_view start, const std::string& where);

// The text of a file with these bytes: without the mark, and with "\n" for "\r\n". Error as above.
std::string plain_text(std::string bytes, const std::string& where);

// read_regular_file(), as plain_text().
std::string read_text_file(const std::string& path, int64_t most);

}  // namespace fleet
