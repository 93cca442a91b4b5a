// Rejects what a user asked for.
#pragma once

#include <string>

#include "base/error.h"

namespace fleet {

// Throws kUsage; the parameters are those of Error.
[[noreturn]] inline void refuse(std::string what, std::string where = {}, std::string next = {}) {
  throw Error(ErrorCode::kUsage, std::move(what), std::move(where), std::move(next));
}

}  // namespace fleet
