#include "base/error.h"

#include <iterator>

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
  constexpr const char* kNames[] = {"usage", "not found", "unsupported", "timeout",  "peer lost",
                                    "stale", "io",        "internal",    "no memory"};
  const auto at = static_cast<size_t>(code);
  return at < std::size(kNames) ? kNames[at] : "unknown";
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
