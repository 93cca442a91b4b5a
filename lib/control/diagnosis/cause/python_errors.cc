// Exceptions of Python: tracebacks as the interpreter, loguru, rich and IPython print them, and the
// failures of pytest.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "diagnosis/cause/error_candidates.h"

namespace fleet {
namespace {

using enum ErrorCandidate::Strength;
using enum ErrorCandidate::Kind;
using std::string_view;

constexpr string_view kHeader = "Traceback (most recent call last)";

// It only says that another process has failed, whose own error comes before.
bool is_of_a_wrapper(string_view exception) {
  constexpr auto kWrappers = std::to_array<string_view>(
      {"ChildFailedError", "CalledProcessError", "ProcessExitedException", "SystemExit"});
  const string_view name = exception_class(exception);
  return std::find(kWrappers.begin(), kWrappers.end(), name.substr(name.rfind('.') + 1)) !=
         kWrappers.end();
}

// TensorFlow's "Graph execution error:" has its message in the line of the operation or before it.
std::string with_details(const LogEnding& lines, size_t at, string_view exception,
                         string_view margin) {
  if (!exception.ends_with("Graph execution error:")) return lines.whole(at, exception, margin);
  for (size_t i = at + 1; i < lines.size(); ++i) {
    const size_t node = lines[i].find("[[{{node ");
    if (node == string_view::npos) continue;
    const string_view before = trim(lines[i].substr(0, node));
    return std::string(exception) + " " + std::string(before.empty() ? trim(lines[i - 1]) : before);
  }
  return lines.whole(at, exception, margin);
}

// A traceback that did not end the main thread says so in the lines before it.
ErrorCandidate::Strength strength_of(const LogEnding& lines, size_t header) {
  constexpr auto kIgnoring =
      std::to_array<string_view>({"Exception ignored", "_run_exitfuncs", "--- Logging error ---"});
  constexpr auto kElsewhere =
      std::to_array<string_view>({"Exception in thread ", "was never retrieved"});
  size_t at = header;
  for (int i = 0; i < 2; ++i) {
    at = lines.previous_text(at);
    if (at >= lines.size()) break;
    const auto has = [&](string_view words) { return lines[at].find(words) != string_view::npos; };
    if (std::any_of(kIgnoring.begin(), kIgnoring.end(), has)) return kIgnored;
    // multiprocessing's: "Process SpawnPoolWorker-1:"
    const bool child = i == 0 && lines[at].starts_with("Process ") && lines[at].ends_with(':');
    if (child || std::any_of(kElsewhere.begin(), kElsewhere.end(), has)) return kSecondary;
  }
  return kFinal;
}

bool is_chained(const LogEnding& lines, size_t header) {
  const size_t before = lines.previous_text(header);
  return before < lines.size() && lines[before].find("above exception") != string_view::npos;
}

// A prefix of all lines of the traceback: "[rank0]: ", "  | ".
std::string margin_of(string_view before) {
  for (const string_view word : {"Exception Group ", "Original "}) {
    if (before.ends_with(word)) before.remove_suffix(word.size());
  }
  std::string margin(before);
  if (margin.ends_with("+ ")) margin.replace(margin.size() - 2, 2, "| ");
  return margin;
}

// Otherwise the text before the header is a progress bar, or a message of a logger.
bool is_margin(const LogEnding& lines, size_t header, string_view margin) {
  for (size_t i = header + 1; i < std::min(header + 4, lines.size()); ++i) {
    if (!lines[i].starts_with(margin)) continue;
    const string_view rest = lines[i].substr(margin.size());
    if (rest.empty() || is_indented(rest) || rest.starts_with("> ")) return true;
  }
  return false;
}

struct Exception {
  size_t line;
  std::string text;
};

// The first line after the frames that reads like an exception; else the first one.
std::optional<Exception> find_exception(const LogEnding& lines, size_t header, string_view margin) {
  std::optional<Exception> first;
  constexpr int kMaxOthers = 5;  // exceptions of threads that print at the same time
  int others = 0;
  for (size_t i = header + 1; i < lines.size() && others < kMaxOthers; ++i) {
    if (!lines[i].starts_with(margin)) continue;  // another process's line in between
    const string_view line = lines[i].substr(margin.size());
    if (trim(line).empty() || is_indented(line) || line.starts_with("> ")) continue;
    if (line.find(kHeader) != line.npos) break;
    if (!exception_class(line).empty()) return Exception{i, with_details(lines, i, line, margin)};
    if (!first) first = Exception{i, with_details(lines, i, line, margin)};
    ++others;
  }
  return first;
}

// rich: after a box, whose title is the header.
std::optional<Exception> exception_after_box(const LogEnding& lines, size_t header) {
  for (size_t i = header + 1; i < lines.size(); ++i) {
    const string_view line = trim(lines[i]);
    if (!line.starts_with("\xe2\x95\xb0") && !line.starts_with("\xe2\x94\x94") &&
        !line.starts_with("+-")) {
      continue;
    }
    const size_t next = lines.next_text(i);
    if (next >= lines.size()) return std::nullopt;
    return Exception{next, lines.whole(next, lines[next])};
  }
  return std::nullopt;
}

// IPython: "KeyError       Traceback (most recent call last)", frames, "KeyError: 'lr'".
std::optional<Exception> exception_of_notebook(const LogEnding& lines, size_t header,
                                               string_view name) {
  for (size_t i = header + 1; i < lines.size(); ++i) {
    if (exception_class(lines[i]) == name) return Exception{i, lines.whole(i, lines[i])};
  }
  return std::nullopt;
}

std::optional<Exception> exception_of(const LogEnding& lines, size_t header, size_t begin) {
  const string_view before = lines[header].substr(0, begin);
  const string_view after = lines[header].substr(begin + kHeader.size());
  if (before.ends_with("C++ ")) return std::nullopt;  // Paddle's
  if (!after.starts_with(':')) {
    const string_view name = trim(before);
    return exception_class(name).empty() ? exception_after_box(lines, header)
                                         : exception_of_notebook(lines, header, name);
  }
  std::string margin = margin_of(before);
  if (!is_margin(lines, header, margin)) margin.clear();
  return find_exception(lines, header, margin);
}

// "E   ValueError: boom": the first such line of the last failure.
void add_pytest_failure(const LogEnding& lines, ErrorCandidates* to) {
  const auto shows_error = [&](size_t i) { return lines[i].starts_with("E   "); };
  bool is_pytest = false;
  for (size_t i = lines.size(); i-- > 0;) {
    is_pytest |= lines[i].find("= short test summary info =") != string_view::npos;
    if (!is_pytest || !shows_error(i)) continue;
    while (i > 0 && shows_error(i - 1)) --i;
    to->push_back({i, kFinal, kExit, std::string(trim(lines[i].substr(1)))});
    return;
  }
}

}  // namespace

void add_python_errors(const LogEnding& lines, ErrorCandidates* to) {
  ErrorCandidate::Strength strength = kFinal;
  for (size_t header = 0; header < lines.size(); ++header) {
    const size_t begin = lines[header].find(kHeader);
    if (begin == string_view::npos) continue;
    if (!is_chained(lines, header)) strength = strength_of(lines, header);
    auto found = exception_of(lines, header, begin);
    if (!found) continue;
    const bool wrapper = is_of_a_wrapper(found->text);
    const auto weight = wrapper ? std::max(strength, kSecondary) : strength;
    to->push_back({found->line, weight, kTraceback, std::move(found->text)});
  }
  add_pytest_failure(lines, to);
}

}  // namespace fleet
