// What went wrong in a group, in a form that travels between its ranks.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "comm/group.h"

namespace fleet {

// An Error without pointers: for shared memory and messages. Long texts are cut.
struct Fault {
  void set(const Error& error);
  Error get() const;

  uint32_t code;
  char text[1020];  // failure, where and next, each ended by a zero
};

// What the others fail with where `group.rank` is aborted with `why`: the same, if it names a lost
// or late rank; else that this rank gave up.
Error as_others_hear(const Error& why, const Group& group);
Error rank_left(const std::string& names);
Error ranks_late(const std::string& names, int64_t milliseconds);

}  // namespace fleet
