#include "launch/planning/shell_words.h"

#include <optional>

#include "launch/planning/refuse.h"

namespace fleet {

std::vector<std::string> shell_words(const std::string& text, const std::string& origin) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool escapes = c == '\\' && quote != '\'' && at + 1 < text.size();
    if (escapes) {
      word = word.value_or("") + text[++at];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      word = word.value_or("");  // '' is an empty word
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(std::move(*word));
      word.reset();
    } else {
      word = word.value_or("") + c;
    }
  }
  if (quote != 0) {
    refuse(std::string("the quote ") + quote + " is not closed", origin, "quote it as in a shell");
  }
  if (word) words.push_back(std::move(*word));
  return words;
}

}  // namespace fleet
