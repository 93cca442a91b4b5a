#include "base/error.h"

#include "base/terminal_text.h"

namespace fleet {
namespace {

constexpr size_t kLongest = 16 << 10;  // bytes: a message may quote text of other programs

// Messages quote names and texts of others: these must not control a terminal, and `where` must
// stay on one line.
std::string compose(const std::string& what, const std::string& where, const std::string& next) {
  std::string text;
  if (!where.empty()) text += shown_path(where) + ": ";
  text += escape_controls(std::string_view(what).substr(0, kLongest));
  if (what.size() > kLongest) text += "...";
  if (!next.empty()) text += "; " + escape_controls(std::string_view(next).substr(0, kLongest));
  return text;
}

}  // namespace

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kNoMemory:
      return "no memory";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kPeerLost:
      return "peer lost";
    case ErrorCode::kStale:
      return "stale";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string what, std::string where, std::string next)
    : std::runtime_error(compose(what, where, next)),
      code_(code),
      failure_(std::move(what)),
      where_(std::move(where)),
      next_(std::move(next)) {}

int exit_code_for(ErrorCode code) {
  if (code == ErrorCode::kPeerLost) return kExitPeerLost;
  return code == ErrorCode::kUsage || code == ErrorCode::kUnsupported ||
                 code == ErrorCode::kNotFound || code == ErrorCode::kNoMemory
             ? 2
             : 1;
}

void internal_error(const char* file, int line, const std::string& what) {
  throw Error(ErrorCode::kInternal, what, std::string(file) + ":" + std::to_string(line),
              "this is a bug in fleetrun; please report it");
}

}  // namespace fleet
