// Splits text into words like a shell.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Splits `text` at blanks. '..', ".." and \ protect blanks as in a shell; nothing else has a
// special meaning. Throws kUsage, naming `origin`, for an unclosed quote.
std::vector<std::string> shell_words(const std::string& text, const std::string& origin);

}  // namespace fleet
