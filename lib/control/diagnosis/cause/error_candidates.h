// The errors in the output of a program. failure_cause() chooses the one that ended it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diagnosis/cause/log_ending.h"

namespace fleet {

struct ErrorCandidate {
  enum class Strength {
    kFinal,      // a report of an error that ends a program
    kSecondary,  // may be the consequence of another error, or may have been handled
    kReported,   // a line with the level or the form of an error
    kIgnored,    // the program continued, or was exiting already
  };
  enum class Kind {
    kOther,
    kTraceback,
    kAbort,  // follows from an exception that was reported just before
    kExit,   // explains an exit, no signal
  };
  size_t line;
  Strength strength;
  Kind kind;
  std::string text;
};

using ErrorCandidates = std::vector<ErrorCandidate>;

// Each adds the candidates that it finds.
void add_python_errors(const LogEnding& lines, ErrorCandidates* to);
void add_marked_errors(const LogEnding& lines, ErrorCandidates* to);
void add_formed_errors(const LogEnding& lines, ErrorCandidates* to);

}  // namespace fleet
