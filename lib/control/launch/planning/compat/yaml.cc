#include "launch/planning/compat/yaml.h"

#include <algorithm>

#include "base/text.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

struct Line {
  size_t number = 0, indent = 0;
  std::string text;  // without indentation and comment
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Where a quoted scalar at the beginning of the text ends: behind its quote; npos if it does not.
size_t end_of_quoted(std::string_view text) {
  const char quote = text[0];
  for (size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) return at + 1;
      ++at;  // '' is a quote
    }
  }
  return std::string_view::npos;
}

// Calls `found` for each position outside quotes until it returns true. A quote opens only where a
// scalar begins.
template <typename Found>
size_t find_unquoted(std::string_view text, const Found& found) {
  bool begins = true;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (begins && (c == '\'' || c == '"')) {
      const size_t length = end_of_quoted(text.substr(at));
      if (length == std::string_view::npos) return length;
      at += length - 1;
      begins = false;
      continue;
    }
    if (found(at)) return at;
    begins = is_blank(c) ? begins : c == '[' || c == ',' || c == ':' || c == '-' || c == '{';
  }
  return std::string_view::npos;
}

std::string_view without_comment(std::string_view text) {
  return text.substr(0, find_unquoted(text, [&](size_t at) {
                       return text[at] == '#' && (at == 0 || is_blank(text[at - 1]));
                     }));
}

bool is_word(std::string_view text, std::initializer_list<const char*> words) {
  const std::string lower = lower_case(text);
  return std::ranges::any_of(words, [&](const char* word) { return lower == word; });
}

class Reader {
 public:
  Reader(std::string_view text, std::string where) : where_(std::move(where)) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    size_t number = 0;
    for (std::string_view line : lines_of(text)) {
      ++number;
      line = without_comment(line);
      const size_t indent = std::min(line.find_first_not_of(' '), line.size());
      const std::string own(trim(line.substr(indent)));
      if (own.empty() || (indent == 0 && (own == "---" || own == "..."))) continue;
      if (line[indent] == '\t') unsupported("a tab at the beginning of a line", number);
      lines_.push_back({number, indent, own});
    }
  }

  Json read() {
    if (lines_.empty()) return Json::object();
    Json all = block(lines_[0].indent);
    if (at_ < lines_.size()) unsupported("this indentation", lines_[at_].number);
    return all;
  }

 private:
  [[noreturn]] void unsupported(const std::string& what, size_t number) const {
    refuse("fleetrun does not read " + what, where_ + " line " + std::to_string(number),
           "write mappings as `key: value`, one per line");
  }

  bool at_item() const { return lines_[at_].text == "-" || lines_[at_].text.starts_with("- "); }
  bool is_at(size_t indent) const { return at_ < lines_.size() && lines_[at_].indent == indent; }

  Json block(size_t indent) { return at_item() ? list(indent) : mapping(indent); }

  Json list(size_t indent) {
    Json all = Json::array();
    for (; is_at(indent) && at_item(); ++at_)
      all.push_back(value(trim(lines_[at_].text.substr(1))));
    return all;
  }

  Json mapping(size_t indent) {
    Json all = Json::object();
    while (is_at(indent) && !at_item()) {
      const std::string& text = lines_[at_].text;
      const size_t colon = find_unquoted(text, [&](size_t at) {
        return text[at] == ':' && (at + 1 == text.size() || is_blank(text[at + 1]));
      });
      if (colon == std::string::npos) unsupported("'" + text + "'", lines_[at_].number);
      Json& member = all[key(text.substr(0, colon))];
      const std::string rest(trim(std::string_view(text).substr(colon + 1)));
      if (!rest.empty()) {
        member = value(rest);
        ++at_;
        continue;
      }
      ++at_;
      const bool nested = at_ < lines_.size() && (lines_[at_].indent > indent ||
                                                  (lines_[at_].indent == indent && at_item()));
      member = nested ? block(lines_[at_].indent) : Json();
    }
    return all;
  }

  std::string key(const std::string& text) const {
    const Json scalar = value(trim(text));
    return scalar.is_string() ? scalar.get<std::string>() : std::string(trim(text));
  }

  // A scalar, or a flow list of them.
  Json value(std::string_view text) const {
    if (text == "{}") return Json::object();
    if (!text.starts_with('[')) return scalar(text);
    if (!text.ends_with(']')) unsupported("a list of several lines", lines_[at_].number);
    text = text.substr(1, text.size() - 2);
    Json all = Json::array();
    while (!trim(text).empty()) {
      const size_t comma = find_unquoted(text, [&](size_t at) { return text[at] == ','; });
      all.push_back(scalar(trim(text.substr(0, comma))));
      text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return all;
  }

  Json scalar(std::string_view text) const {
    if (text.empty() || is_word(text, {"~", "null"})) return {};
    if (text[0] == '\'' || text[0] == '"') return quoted(text);
    if (std::string_view("[]{}&*!|>%@`").find(text[0]) != std::string_view::npos) {
      unsupported("'" + std::string(text) + "'", lines_[at_].number);
    }
    if (is_word(text, {"true", "yes", "on"})) return true;
    if (is_word(text, {"false", "no", "off"})) return false;
    long long integer = 0;
    double number = 0;
    if (parse_int(text, &integer)) return integer;
    if (text.find('.') != std::string_view::npos && parse_double(text, &number)) return number;
    return std::string(text);
  }

  std::string quoted(std::string_view text) const {
    if (end_of_quoted(text) != text.size()) {
      unsupported("the quotes of " + std::string(text), lines_[at_].number);
    }
    const char quote = text[0];
    text = text.substr(1, text.size() - 2);
    std::string plain;
    for (size_t at = 0; at < text.size(); ++at) {
      const bool escaped = quote == '\'' ? text[at] == '\'' : text[at] == '\\';
      if (escaped) ++at;
      if (escaped && quote == '"' && text[at] != '"' && text[at] != '\\') {
        unsupported("the escape \\" + std::string(1, text[at]), lines_[at_].number);
      }
      plain += text[at];
    }
    return plain;
  }

  std::string where_;
  std::vector<Line> lines_;
  size_t at_ = 0;
};

}  // namespace

Json parse_yaml(std::string_view text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace fleet
