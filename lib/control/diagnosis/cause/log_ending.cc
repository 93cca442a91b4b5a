#include "diagnosis/cause/log_ending.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace fleet {
namespace {

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// U+2500 to U+257F, in UTF-8.
bool begins_with_box(std::string_view text) {
  return text.size() >= 3 && text[0] == '\xe2' && (text[1] == '\x94' || text[1] == '\x95');
}

// A letter or digit of any script.
bool has_text(std::string_view line) {
  while (!line.empty()) {
    if (begins_with_box(line)) {
      line.remove_prefix(3);
      continue;
    }
    if (is_letter_or_digit(line[0]) || static_cast<unsigned char>(line[0]) >= 0x80) return true;
    line.remove_prefix(1);
  }
  return false;
}

// These begin lines of the program itself.
bool is_own_word(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"info", "debug", "trace", "warning", "warn", "error", "critical", "fatal", "epoch", "step",
       "iter", "iteration", "loss", "train"});
  return std::find(kWords.begin(), kWords.end(), lower_case(word)) != kWords.end();
}

// "wandb: ", "COMET INFO: ", "[neptune] ", or "".
std::string_view tag_of(std::string_view line) {
  if (!exception_class(line).empty()) return {};
  const bool bracket = line.starts_with('[');
  size_t end = bracket ? 1 : 0;
  const size_t begin = end;
  while (end < line.size() && (is_letter_or_digit(line[end]) || line[end] == '_')) ++end;
  const std::string_view word = line.substr(begin, end - begin);
  if (word.size() < 3 || std::isdigit(static_cast<unsigned char>(word[0])) || is_own_word(word)) {
    return {};
  }
  std::string_view rest = line.substr(end);
  if (!bracket && rest.starts_with(" INFO:")) rest.remove_prefix(5);
  const std::string_view close = bracket ? "]" : ":";
  if (!rest.starts_with(close) || (rest.size() > 1 && rest[1] != ' ')) return {};
  return line.substr(0, line.size() - rest.size() + 1);
}

}  // namespace

std::string_view exception_class(std::string_view line) {
  const size_t end = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, end);
  if (name.empty() || (end + 1 < line.size() && line[end + 1] != ' ')) return {};
  bool lower = false;
  for (const char c : name) {
    if (!is_letter_or_digit(c) && c != '_' && c != '.' && c != '<' && c != '>') return {};
    lower |= std::islower(static_cast<unsigned char>(c)) != 0;
  }
  const auto first = static_cast<unsigned char>(name[0]);
  const bool is_class = std::isupper(first) != 0 || name[0] == '_' ||
                        (name.find('.') != name.npos && std::isalpha(first) != 0);
  return is_class && lower ? name : std::string_view();
}

bool is_indented(std::string_view line) { return line.starts_with(' ') || line.starts_with('\t'); }

std::string_view unframed(std::string_view line) {
  constexpr std::string_view kFrame = " \t|#";
  const auto strip = [&](bool at_end) {
    if (line.empty()) return false;
    const bool box =
        begins_with_box(at_end && line.size() >= 3 ? line.substr(line.size() - 3) : line);
    if (!box && kFrame.find(at_end ? line.back() : line.front()) == kFrame.npos) return false;
    const size_t bytes = box ? 3 : 1;
    at_end ? line.remove_suffix(bytes) : line.remove_prefix(bytes);
    return true;
  };
  while (strip(false)) continue;
  while (strip(true)) continue;
  return line;
}

LogEnding::LogEnding(std::string_view log) : lines_(lines_of(log)) {
  while (!lines_.empty() && trim(lines_.back()).empty()) lines_.pop_back();
  if (!lines_.empty()) tag_ = tag_of(lines_.back());
  after_.resize(lines_.size());
  for (size_t line = lines_.size(), after = 0; line-- > 0;) {
    after_[line] = after;
    if (!is_epilogue(line)) ++after;
  }
}

bool LogEnding::is_tagged(size_t line) const {
  return !tag_.empty() && tag_of(lines_[line]) == tag_;
}

bool LogEnding::is_epilogue(size_t line) const {
  const std::string_view text = lines_[line];
  // Go's function, before its file.
  const bool is_frame = line + 1 < lines_.size() && lines_[line + 1].starts_with("        ");
  return is_indented(text) || begins_with_box(text) || !has_text(text) || is_frame ||
         text.starts_with("goroutine ") || is_tagged(line);
}

size_t LogEnding::next_text(size_t line) const {
  for (++line; line < lines_.size() && !has_text(lines_[line]);) ++line;
  return std::min(line, lines_.size());
}

size_t LogEnding::previous_text(size_t line) const {
  while (line-- > 0) {
    if (has_text(lines_[line])) return line;
  }
  return lines_.size();
}

std::string LogEnding::whole(size_t line, std::string_view text, std::string_view margin) const {
  std::string all(trim(text));
  const size_t next = next_text(line);
  if (!all.ends_with(':') || next >= lines_.size() || next > line + 3) return all;
  std::string_view rest = lines_[next];
  if (rest.starts_with(margin)) rest.remove_prefix(margin.size());
  rest = unframed(rest);
  const bool is_stack = rest.starts_with("File \"") || rest.starts_with("at ") ||
                        rest.find("Traceback (most recent") != rest.npos;
  return is_stack ? all : all + " " + std::string(rest);
}

}  // namespace fleet
