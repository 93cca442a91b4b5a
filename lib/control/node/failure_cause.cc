#include "node/failure_cause.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr size_t kLongest = 300;  // columns
// An exiting interpreter and its libraries may print this many lines after the exception.
constexpr size_t kLinesAfter = 30;
constexpr std::string_view kTraceback = "Traceback (most recent call last):";

using Lines = std::vector<std::string_view>;

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

// The exception of the last traceback near the end: its first line that is not indented. All lines
// of a traceback may have a prefix: "[rank0]: ", "  | ".
std::string_view last_exception(const Lines& lines) {
  for (size_t header = lines.size(); header-- > 0;) {
    const size_t begin = lines[header].find(kTraceback);
    if (begin == std::string_view::npos) continue;
    const std::string_view margin = lines[header].substr(0, begin);
    for (size_t i = header + 1; i < lines.size(); ++i) {
      if (!lines[i].starts_with(margin)) continue;  // another process's line in between
      const std::string_view line = lines[i].substr(margin.size());
      if (line.empty() || line[0] == ' ' || line[0] == '\t') continue;
      return lines.size() - i <= kLinesAfter ? line : std::string_view();
    }
  }
  return {};
}

// The last line, near the end, that contains one of these.
std::string_view last_with(const Lines& lines, std::initializer_list<std::string_view> marks) {
  for (size_t at = lines.size(); at-- > 0 && lines.size() - at <= kLinesAfter;) {
    for (const std::string_view mark : marks) {
      if (lines[at].find(mark) != std::string_view::npos) return lines[at];
    }
  }
  return {};
}

// fleet-worker's own error: "fleet-worker: img/train: 3 class folders, ...".
std::string_view last_of_worker(const Lines& lines) {
  const std::string_view line = last_with(lines, {"fleet-worker: "});
  return line.starts_with("fleet-worker: ") ? line : std::string_view();
}

// Final messages of programs in other languages.
std::string_view last_words(const Lines& lines) {
  for (const std::string_view mark : {"  what():", "Fatal Python error:", "terminate called"}) {
    const std::string_view line = last_with(lines, {mark});
    if (!line.empty()) return line;
  }
  return last_with(lines, {"Assertion `", "Assertion failed", "panicked at",
                           "Check failed:", "CHECK failed", "AddressSanitizer:", "panic: "});
}

// "----\nError Message Summary:\n----\nInvalidArgumentError: ..."
std::string_view paddle_summary(const Lines& lines) {
  for (size_t at = lines.size(); at-- > 0 && lines.size() - at <= kLinesAfter;) {
    if (lines[at].find("Error Message Summary:") == std::string_view::npos) continue;
    for (size_t i = at + 1; i < std::min(lines.size(), at + 4); ++i) {
      if (lines[i].find("Error: ") != std::string_view::npos) return lines[i];
    }
  }
  return {};
}

bool reads_like_an_error(std::string_view line) {
  constexpr std::array<std::string_view, 22> kWords = {
      "error",     "exception", "fail",          "fatal",     "abort",    "panic",
      "assert",    "cannot",    "can't",         "could not", "couldn't", "unable",
      "not found", "no such",   "denied",        "invalid",   "refused",  "killed",
      "undefined", "missing",   "out of memory", "usage: "};
  const std::string words = lower(line);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

}  // namespace

std::string cause_line(std::string_view text) {
  const std::string shown = resolve_output(text);
  return cut_to_columns(trim(std::string_view(shown).substr(0, shown.find('\n'))), kLongest);
}

std::string failure_cause(std::string_view log, int signal) {
  Lines lines = lines_of(log);
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  if (lines.empty()) return {};
  // If another process ended the program, its log has no cause; if it crashed, it may have one.
  const bool crashed = signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS ||
                       signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
  if (signal != 0 && !crashed) return {};
  std::string_view cause = paddle_summary(lines);
  if (cause.empty() && signal == 0) cause = last_of_worker(lines);
  if (cause.empty() && signal == 0) cause = last_exception(lines);
  if (cause.empty()) cause = last_words(lines);
  const std::string_view last = lines.back();
  if (cause.empty() && (signal == 0 || signal == SIGABRT) && reads_like_an_error(last)) {
    cause = last;
  }
  std::string text = cause_line(cause);
  constexpr std::string_view kWhat = "what():";
  if (text.starts_with(kWhat)) text = trim(std::string_view(text).substr(kWhat.size()));
  return text;
}

namespace {

constexpr size_t kLongestFile = 1 << 20;

// "" if the file cannot be read.
std::string read_start(const std::string& path) {
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(kLongestFile, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + have, text.size() - have);
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  text.resize(have);
  return text;
}

std::string cause_text(const Json& object, const char* key) {
  const Json* found = object.find(key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

// A number, or a string that holds one.
int64_t time_of(const Json& object) {
  const Json* found = object.find("timestamp");
  if (!found) return 0;
  if (found->is_number()) {
    const double seconds = found->get<double>();
    return seconds > 0 && seconds < 1e15 ? static_cast<int64_t>(seconds) : 0;
  }
  long long seconds = 0;
  return found->is_string() && parse_int(found->get<std::string>(), &seconds) ? seconds : 0;
}

}  // namespace

RecordedError read_error_file(const std::string& path) {
  if (path.empty()) return {};
  const auto file = Json::try_parse(read_start(path));
  const Json* found = file ? file->find("message") : nullptr;
  if (!found) return {};
  const Json& message = *found;
  RecordedError error;
  if (message.is_string()) {
    error.set_message(message.get<std::string>());
    error.set_unix_time(time_of(*file));
  }
  if (!message.is_object()) return error;
  error.set_message(cause_text(message, "message"));
  const Json* extra = message.find("extraInfo");
  if (extra && extra->is_object()) {
    error.set_callstack(cause_text(*extra, "py_callstack"));
    error.set_unix_time(time_of(*extra));
  }
  return error;
}

}  // namespace fleet
