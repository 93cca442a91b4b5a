// Errors that a line shows by its form.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "diagnosis/cause/error_candidates.h"

namespace fleet {
namespace {

using enum ErrorCandidate::Strength;
using enum ErrorCandidate::Kind;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Ruby: "train.rb:3:in `open': cannot open shard (RuntimeError)". Its message; "" for other lines.
std::string_view ruby_error(std::string_view line) {
  const size_t in = line.find(":in "), end = line.find("': ");
  if (is_indented(line) || in == line.npos || end == line.npos || !line.ends_with(')')) return {};
  const std::string_view place = line.substr(0, in);
  return is_number(place.substr(place.rfind(':') + 1)) ? line.substr(end + 3) : std::string_view();
}

// Perl: "cannot open shard at train.pl line 3." or "..., <STDIN> line 5."
bool is_perl_error(std::string_view line) {
  if (!line.ends_with('.')) return false;
  const size_t number = line.find_last_not_of("0123456789", line.size() - 2);
  const bool ends_well = number != line.npos && number + 2 < line.size();
  return ends_well && line.substr(0, number + 1).ends_with(" line ") &&
         line.find(" at ") != line.npos;
}

// glog and absl: "F1127 21:58:29.123456 12 a.cc:12] message"; TensorFlow: "...: F a.cc:12]
// message". The message; "" for other lines.
std::string_view fatal_log(std::string_view line) {
  const size_t message = line.find("] ");
  if (message == line.npos) return {};
  const bool glog = line.starts_with('F') && is_number(line.substr(1, 4));
  const bool tensorflow = line.substr(0, message).find(": F ") != line.npos;
  return glog || tensorflow ? line.substr(message + 2) : std::string_view();
}

// Node, the JVM and .NET: an exception before "    at FRAME". The exception, or "".
std::string_view error_before_frames(const LogEnding& lines, size_t at) {
  constexpr std::string_view kUncaught = "Uncaught ";
  if (at + 1 >= lines.size() || !is_indented(lines[at + 1])) return {};
  std::string_view line = lines[at];
  if (line.starts_with(kUncaught)) line.remove_prefix(kUncaught.size());
  const bool before = trim(lines[at + 1]).starts_with("at ");
  return before && !exception_class(line).empty() ? line : std::string_view();
}

// Typer and rich-click: "╭─ Error ───╮\n│ message │"
bool is_error_box(std::string_view line) {
  return line.starts_with("\xe2\x95\xad\xe2\x94\x80 Error ");
}

// "error: 0.2" is a metric, "ERROR 3" a count.
bool has_message(std::string_view rest) {
  const size_t begin = rest.find_first_not_of(" \t:;,.!-]|");
  if (begin == rest.npos) return false;
  rest.remove_prefix(begin);
  const std::string_view word = rest.substr(0, rest.find(' '));
  const bool number = word.find_first_not_of("0123456789.e+-%") == word.npos;
  return !number || (is_number(word) && word.size() < rest.size());
}

bool is_word_at(std::string_view line, size_t at, size_t size) {
  const auto is_part = [&](size_t i) {
    return std::isalnum(static_cast<unsigned char>(line[i])) != 0 || line[i] == '_';
  };
  return (at == 0 || !is_part(at - 1)) && (at + size >= line.size() || !is_part(at + size));
}

// "train.py: error: ...", "OSError: ...", "2026-11-27 ERROR ...", "[critical] ..."
bool has_error_level(std::string_view line) {
  constexpr auto kLevels =
      std::to_array<std::string_view>({"ERROR", "CRITICAL", "FATAL", "SEVERE"});
  constexpr auto kMarks = std::to_array<std::string_view>(
      {"error: ", "exception: ", "fatal: ", "[error] ", "[critical] ", "[fatal] "});
  for (const std::string_view level : kLevels) {
    const size_t at = line.find(level);
    if (at == line.npos || !is_word_at(line, at, level.size())) continue;
    return has_message(line.substr(at + level.size()));
  }
  const std::string lower = lower_case(line);
  for (const std::string_view mark : kMarks) {
    const size_t at = lower.find(mark);
    if (at == lower.npos) continue;
    return has_message(line.substr(at + mark.size())) && lower.find("warning") == lower.npos;
  }
  return false;
}

}  // namespace

void add_formed_errors(const LogEnding& lines, ErrorCandidates* to) {
  const auto add = [&](size_t at, ErrorCandidate::Strength strength, ErrorCandidate::Kind kind,
                       std::string_view text) {
    to->push_back({at, strength, kind, lines.whole(at, text)});
  };
  for (size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = lines[at];
    if (const std::string_view text = ruby_error(line); !text.empty()) {
      add(at, kFinal, kOther, text);
    } else if (const std::string_view fatal = fatal_log(line); !fatal.empty()) {
      add(at, kFinal, kAbort, fatal);
    } else if (const std::string_view error = error_before_frames(lines, at); !error.empty()) {
      add(at, kSecondary, kOther, error);
    } else if (is_error_box(line) && at + 1 < lines.size()) {
      add(at, kSecondary, kExit, unframed(lines[at + 1]));
    } else if (is_perl_error(line)) {
      add(at, kReported, kExit, line);
    } else if (!lines.is_tagged(at) && has_error_level(line)) {
      add(at, kReported, kExit, line);
    }
  }
}

}  // namespace fleet
