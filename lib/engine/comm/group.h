// Code that all backends share: the members of a group, and the check of a call's arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"

namespace fleet {

// The members of a group and their names in messages.
struct Group {
  int rank = 0;
  int size = 1;
  std::vector<int> names;  // by rank

  std::string name_of(int member) const { return "rank " + std::to_string(names[member]); }
  // "rank 3", "ranks 1, 4"
  std::string name_of(const std::vector<int>& members) const;
  // The subgroup of these members, in this order. kInternal if it is empty, does not contain the
  // caller, or names a member twice.
  Group subgroup(std::span<const int> ranks) const;
};

// kInternal if the arguments are invalid; throws in the call itself, before anything is enqueued.
//   in_parts, out_parts  number of equal parts in `in` and `out`: {1, size} for all_gather
void check_pair(const char* operation, const View& in, const View& out, size_t in_parts,
                size_t out_parts);
void check_root(const char* operation, int root, const Group& group);
void check_peer(const char* operation, int peer, const Group& group);

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
