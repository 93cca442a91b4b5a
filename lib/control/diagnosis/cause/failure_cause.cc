#include "diagnosis/cause/failure_cause.h"

#include <signal.h>

#include <algorithm>
#include <array>

#include "base/terminal_text.h"
#include "base/text.h"
#include "diagnosis/cause/error_candidates.h"

namespace fleet {
namespace {

using enum ErrorCandidate::Strength;
using enum ErrorCandidate::Kind;

constexpr size_t kLongestCause = 300;  // columns
// A program with an error may print this many more lines: an interpreter and its libraries that
// exit, output that was buffered.
constexpr size_t kLinesAfterError = 30, kLinesAfterReport = 10, kLinesAtExit = 5;

enum class EndedBy { kExit, kAbort, kCrash, kInterrupt, kOthers };
EndedBy ended_by(int signal) {
  switch (signal) {
    case 0:
      return EndedBy::kExit;
    case SIGABRT:
      return EndedBy::kAbort;
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
      return EndedBy::kCrash;
    case SIGINT:
      return EndedBy::kInterrupt;
    default:
      return EndedBy::kOthers;
  }
}

bool explains(const ErrorCandidate& error, EndedBy end, const LogEnding& lines) {
  switch (end) {
    case EndedBy::kExit:
      return true;
    case EndedBy::kInterrupt:  // Python's handler prints it, and then ends by the signal
      return error.kind == kTraceback && error.text.starts_with("KeyboardInterrupt");
    case EndedBy::kAbort:
    case EndedBy::kCrash:
      break;
    case EndedBy::kOthers:
      return false;
  }
  // An exception does not crash a program, but an interpreter that exits after it may.
  if (error.kind == kTraceback) return lines.lines_after(error.line) <= kLinesAtExit;
  if (error.strength > kSecondary) return end == EndedBy::kAbort;
  return error.kind != kExit;
}

// An abort of an interpreter that exits because of an exception: the exception.
const ErrorCandidate& cause_of_abort(const ErrorCandidates& errors, const ErrorCandidate& abort,
                                     const LogEnding& lines) {
  const ErrorCandidate* found = &abort;
  if (abort.kind != kAbort) return abort;
  for (const ErrorCandidate& error : errors) {
    if (error.kind != kTraceback || error.strength != kFinal) continue;
    const bool before = error.line < abort.line;
    const bool near = lines.lines_after(error.line) <= lines.lines_after(abort.line) + kLinesAtExit;
    if (before && near) found = &error;
  }
  return *found;
}

// The last one of the greatest strength.
const ErrorCandidate* find_error(const ErrorCandidates& errors, EndedBy end,
                                 const LogEnding& lines) {
  const ErrorCandidate* best = nullptr;
  for (const ErrorCandidate& error : errors) {
    const bool strong = error.strength <= kSecondary;
    const size_t most = strong ? kLinesAfterError : kLinesAfterReport;
    if (error.text.empty() || lines.lines_after(error.line) > most) continue;
    if (!explains(error, end, lines)) continue;
    const bool stronger = best && error.strength < best->strength;
    const bool later = best && error.strength == best->strength && error.line > best->line;
    if (!best || stronger || later) best = &error;
  }
  return best ? &cause_of_abort(errors, *best, lines) : nullptr;
}

template <size_t n>
bool has_any(std::string_view line, const std::array<std::string_view, n>& words) {
  const std::string text = lower_case(line);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

// "epoch 3 train error: 0.25"
bool is_metric(std::string_view line) {
  constexpr std::string_view kError = "error";
  const size_t at = lower_case(line).find(kError);
  if (at == line.npos) return false;
  std::string_view rest = line.substr(at + kError.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" :="), rest.size()));
  const std::string_view number = rest.substr(0, rest.find(' '));
  return number.find('.') != number.npos &&
         number.find_first_not_of("0123456789.e+-") == number.npos;
}

bool reads_like_an_error(std::string_view line) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"error",         "exception", "fail",      "fatal",
       "abort",         "panic",     "assert",    "cannot",
       "can't",         "could not", "couldn't",  "unable",
       "not found",     "no such",   "denied",    "invalid",
       "refused",       "killed",    "undefined", "out of memory",
       "missing",       "usage: ",   "must ",     "is empty",
       "are empty",     "expected",  "required",  "requires",
       "needs ",        "mismatch",  "unknown",   "unsupported",
       "not supported", "does not",  "do not",    "is not",
       "are not",       "corrupt",   "timed out", "too many",
       "too large",     "violation", "unbound",   "segmentation fault"});
  return has_any(line, kWords) && !is_metric(line);
}

// Lines that follow an error without a word about it.
bool is_advice(std::string_view line) {
  constexpr auto kAdvice = std::to_array<std::string_view>(
      {"warn", "deprecat", "rust_backtrace", "--help", "node.js v", "execution halted",
       "exit status ", "for a complete stack trace"});
  return has_any(line, kAdvice);
}

// The last line with something to say, if it reads like an error.
std::string_view last_words(const LogEnding& lines) {
  for (size_t at = lines.size(); at-- > 0;) {
    const std::string_view line = lines[at];
    if (trim(line).empty() || is_advice(line)) continue;
    if (reads_like_an_error(line)) return line;
    if (!is_indented(line) && !lines.is_tagged(at)) return {};
  }
  return {};
}

}  // namespace

std::string cause_line(std::string_view text) {
  const std::string shown = resolve_output(text);
  return cut_to_columns(trim(std::string_view(shown).substr(0, shown.find('\n'))), kLongestCause);
}

namespace {

// In the order of their lines. If several finders know a line, the first one counts.
ErrorCandidates errors_in(const LogEnding& lines) {
  ErrorCandidates errors;
  add_python_errors(lines, &errors);
  add_marked_errors(lines, &errors);
  add_formed_errors(lines, &errors);
  std::stable_sort(errors.begin(), errors.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  const auto same = [](const auto& a, const auto& b) { return a.line == b.line; };
  errors.erase(std::unique(errors.begin(), errors.end(), same), errors.end());
  return errors;
}

}  // namespace

std::string failure_cause(std::string_view log, int signal) {
  const EndedBy end = ended_by(signal);
  if (end == EndedBy::kOthers) return {};  // its log has no cause
  const LogEnding lines(log);
  const ErrorCandidates errors = errors_in(lines);
  if (const ErrorCandidate* error = find_error(errors, end, lines)) return cause_line(error->text);
  const bool may_have_said = end == EndedBy::kExit || end == EndedBy::kAbort;
  return may_have_said ? cause_line(last_words(lines)) : std::string();
}

std::string last_error(std::string_view log, bool only_exceptions) {
  const LogEnding lines(log);
  ErrorCandidates errors = errors_in(lines);
  if (only_exceptions) {
    std::erase_if(errors, [](const auto& error) { return error.strength > kSecondary; });
  }
  const ErrorCandidate* last = find_error(errors, EndedBy::kExit, lines);
  return last ? cause_line(last->text) : std::string();
}

}  // namespace fleet
