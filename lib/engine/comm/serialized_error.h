// A group's failure, in a form that can be passed between its ranks.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "comm/group.h"

namespace fleet {

// An Error without pointers, for shared memory and messages. Long texts are truncated.
struct SerializedError {
  void set(const Error& error);
  Error get() const;

  uint32_t code;
  char text[1020];  // failure, where and next, each zero-terminated
};

// The error for the other ranks when `group.rank` aborts with `why`: the same error if it names a
// lost or late rank, otherwise that this rank gave up.
Error error_for_peers(const Error& why, const Group& group);
Error rank_left_error(const std::string& names);
Error ranks_late_error(const std::string& names, int64_t milliseconds);

}  // namespace fleet
