#include "base/python_literals.h"

#include <algorithm>
#include <cctype>

namespace fleet {
namespace {

// The position behind the string or comment that begins at `at`; `at` if none begins there.
size_t behind(const std::string& text, size_t at) {
  const auto found = [&](const char* end, size_t from) {
    const size_t position = text.find(end, from);
    return position == std::string::npos ? text.size() : position + std::string_view(end).size();
  };
  if (text.compare(at, 2, "//") == 0) return found("\n", at);
  if (text.compare(at, 2, "/*") == 0) return found("*/", at + 2);
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != quote) end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

void spell_word(std::string* text, size_t begin, size_t end) {
  const std::string_view word(text->data() + begin, end - begin);
  if (word == "True" || word == "False") (*text)[begin] = word == "True" ? 't' : 'f';
}

void quote_doubly(std::string* text, size_t begin, size_t end) {
  const std::string_view inner(text->data() + begin + 1, end - begin - 2);
  if (inner.find_first_of("\"\\") != std::string_view::npos) return;
  (*text)[begin] = (*text)[end - 1] = '"';
}

}  // namespace

std::string json_from_python(std::string_view given) {
  std::string text(given);
  size_t comma = std::string::npos;  // the last comma followed only by blanks and comments so far
  const auto in_word = [&](size_t at) {
    return std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_';
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = behind(text, at);
    const bool comment = end > at && c == '/';
    if (c == '\'' && end >= at + 2 && text[end - 1] == c) quote_doubly(&text, at, end);
    if (end == at && in_word(at)) {
      while (end < text.size() && in_word(end)) ++end;
      spell_word(&text, at, end);
    }
    if ((c == '}' || c == ']') && comma != std::string::npos) text[comma] = ' ';
    const bool blank = comment || std::isspace(static_cast<unsigned char>(c));
    if (!blank) comma = c == ',' ? at : std::string::npos;
    at = std::max(end, at + 1);
  }
  return text;
}

}  // namespace fleet
