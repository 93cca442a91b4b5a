// Errors that a line shows by a fixed text: the last words of runtimes, libraries and compilers.
#include <array>
#include <string_view>

#include "base/text.h"
#include "diagnosis/cause/error_candidates.h"

namespace fleet {
namespace {

enum class Place { kStart, kAnywhere };
// The part of the line that is the error.
enum class Take { kLine, kFromMark, kAfterMark, kAfterQuote };

using enum Place;
using enum Take;
using enum ErrorCandidate::Strength;
using enum ErrorCandidate::Kind;

struct ErrorMark {
  std::string_view mark;
  Place place = kAnywhere;
  Take take = kFromMark;
  ErrorCandidate::Strength strength = kFinal;
  ErrorCandidate::Kind kind = kOther;
  std::string_view also = {};  // in the same line
  std::string_view next = {};  // begins the next line with text
};

// The first that a line has counts.
constexpr std::array kErrorMarks = {
    ErrorMark{"fleet-worker: ", kStart, kLine, kFinal, kExit},
    // C++
    ErrorMark{"what():", kAnywhere, kAfterMark, kFinal, kAbort},
    ErrorMark{"terminate called", kAnywhere, kFromMark, kSecondary, kAbort},
    ErrorMark{"terminating due to uncaught exception", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"terminating with uncaught exception", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"pure virtual method called", kAnywhere, kFromMark, kFinal, kAbort},
    // assertions, of C, libstdc++, CUDA, glog, absl, protobuf
    ErrorMark{"Assertion `", kAnywhere, kLine, kFinal, kAbort},
    ErrorMark{"Assertion '", kAnywhere, kLine, kFinal, kAbort},
    ErrorMark{"Assertion failed", kAnywhere, kLine, kFinal, kAbort},
    ErrorMark{"Check failed:", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"CHECK failed:", kAnywhere, kFromMark, kFinal, kAbort},
    // glibc
    ErrorMark{"*** stack smashing detected ***", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"*** buffer overflow detected ***", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"Fatal glibc error:", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"double free or corruption", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"corrupted size vs. prev_size", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"corrupted double-linked list", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"malloc(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"malloc_consolidate(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"realloc(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"free(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"munmap_chunk(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"mremap_chunk(): ", kAnywhere, kFromMark, kFinal, kAbort},
    ErrorMark{"error while loading shared libraries: ", kAnywhere, kLine, kSecondary},
    ErrorMark{"symbol lookup error: ", kAnywhere, kLine, kSecondary},
    // sanitizers: the summary has the place, except that of UBSan
    ErrorMark{"SUMMARY: UndefinedBehaviorSanitizer: ", kAnywhere, kAfterMark, kSecondary},
    ErrorMark{"SUMMARY: ", kAnywhere, kAfterMark, kFinal, kOther, "Sanitizer: "},
    ErrorMark{"ERROR: ", kAnywhere, kAfterMark, kSecondary, kOther, "Sanitizer: "},
    // Python's interpreter
    ErrorMark{"Fatal Python error: Aborted", kAnywhere, kFromMark, kSecondary, kAbort},
    ErrorMark{"Fatal Python error: ", kAnywhere, kFromMark, kFinal, kAbort},
    // Go, Rust, Swift, OCaml, Dart, .NET, PHP, Elixir, R
    ErrorMark{"panic: ", kStart, kLine},
    ErrorMark{"fatal error: ", kStart, kLine},
    ErrorMark{"panicked at ", kAnywhere, kLine},
    ErrorMark{"Fatal error: ", kStart, kLine},
    ErrorMark{"PHP Fatal error: ", kAnywhere, kFromMark},
    ErrorMark{"Unhandled exception. ", kStart, kAfterMark},
    ErrorMark{"Unhandled exception:", kStart, kLine},
    ErrorMark{"[UnhandledPromiseRejection: ", kStart, kLine},
    ErrorMark{"** (", kStart, kLine},
    ErrorMark{"Error in ", kStart, kLine, kFinal, kOther, " :"},
    // after these, UBSan: Go has it too
    ErrorMark{": runtime error: ", kAnywhere, kLine},
    // JVM
    ErrorMark{"Exception in thread \"", kStart, kAfterQuote},
    ErrorMark{"A fatal error has been detected by the Java Runtime Environment:"},
    // Julia, Lua, Haskell
    ErrorMark{"ERROR: LoadError: ", kStart, kAfterMark},
    ErrorMark{"ERROR: ", kStart, kAfterMark, kFinal, kOther, {}, "Stacktrace:"},
    ErrorMark{"", kStart, kLine, kSecondary, kOther, {}, "stack traceback:"},
    ErrorMark{"", kStart, kLine, kSecondary, kOther, {}, "CallStack (from "},
    // Fortran
    ErrorMark{"Fortran runtime error: "},
    ErrorMark{"ERROR STOP", kStart, kLine},
    ErrorMark{"forrtl: severe", kStart, kLine},
    ErrorMark{"Program received signal SIG", kAnywhere, kFromMark, kSecondary, kAbort},
    // MPI: an abort may follow from an exception
    ErrorMark{"MPI_ERR_", kAnywhere, kFromMark, kFinal, kOther, "*** MPI_ERR_"},
    ErrorMark{"MPI_ABORT was invoked", kAnywhere, kFromMark, kSecondary},
    ErrorMark{"application called MPI_Abort", kAnywhere, kFromMark, kSecondary},
    // CUDA, NCCL and cuDNN in programs that do not turn them into exceptions
    ErrorMark{"Watchdog caught collective operation timeout", kAnywhere, kFromMark, kSecondary},
    ErrorMark{"CUDA error", kAnywhere, kLine, kSecondary},
    ErrorMark{"CUDA Error", kAnywhere, kLine, kSecondary},
    ErrorMark{"CUDA failure", kAnywhere, kLine, kSecondary},
    ErrorMark{"cudaError", kAnywhere, kLine, kSecondary},
    ErrorMark{"CUBLAS_STATUS_", kAnywhere, kLine, kSecondary},
    ErrorMark{"CUDNN_STATUS_", kAnywhere, kLine, kSecondary},
    ErrorMark{"cuDNN error", kAnywhere, kLine, kSecondary},
    ErrorMark{"NCCL error", kAnywhere, kLine, kSecondary},
    ErrorMark{"NCCL failure", kAnywhere, kLine, kSecondary},
    ErrorMark{"NCCL WARN", kAnywhere, kLine, kReported},
    // Hydra prints no traceback of the function that it calls
    ErrorMark{"Error in call to target ", kStart, kLine},
    ErrorMark{"Error instantiating ", kStart, kLine},
    ErrorMark{"Could not override ", kStart, kLine},
};

bool has_mark(const LogEnding& lines, size_t at, const ErrorMark& mark) {
  const std::string_view line = lines[at];
  if (mark.place == kStart ? !line.starts_with(mark.mark) : line.find(mark.mark) == line.npos) {
    return false;
  }
  if (!mark.also.empty() && line.find(mark.also) == line.npos) return false;
  if (mark.next.empty()) return true;
  const size_t next = lines.next_text(at);
  const bool follows = next < lines.size() && trim(lines[next]).starts_with(mark.next);
  return follows && !trim(line).empty();
}

std::string_view taken(std::string_view line, const ErrorMark& mark) {
  const size_t begin = line.find(mark.mark);
  const size_t end = begin + mark.mark.size();
  switch (mark.take) {
    case kLine:
      return line;
    case kFromMark:
      return line.substr(begin);
    case kAfterMark:
      return line.substr(end);
    case kAfterQuote:
      break;
  }
  const size_t quote = line.find('"', end);
  return quote == line.npos ? line : line.substr(quote + 1);
}

// "Error Message Summary:\n----\nInvalidArgumentError: ...", of Paddle.
void add_paddle_summary(const LogEnding& lines, ErrorCandidates* to) {
  for (size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].find("Error Message Summary:") == std::string_view::npos) continue;
    const size_t next = lines.next_text(at);
    if (next >= lines.size() || lines[next].find("Error: ") == std::string_view::npos) continue;
    to->push_back({next, kFinal, kOther, lines.whole(next, lines[next])});
  }
}

}  // namespace

void add_marked_errors(const LogEnding& lines, ErrorCandidates* to) {
  add_paddle_summary(lines, to);
  for (size_t at = 0; at < lines.size(); ++at) {
    for (const ErrorMark& mark : kErrorMarks) {
      if (!has_mark(lines, at, mark)) continue;
      to->push_back({at, mark.strength, mark.kind, lines.whole(at, taken(lines[at], mark))});
      break;
    }
  }
}

}  // namespace fleet
