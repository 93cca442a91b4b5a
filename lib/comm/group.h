// What all backends share: who is in a group, and the check of a call's arguments.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace fleet {

// Who is in a group, and what messages call them.
struct Group {
  int rank = 0;
  int size = 1;
  std::vector<int> names;  // by rank

  std::string name_of(int member) const { return "rank " + std::to_string(names[member]); }
  // "rank 3", "ranks 1, 4"
  std::string name_of(const std::vector<int>& members) const;
  // The group of these members, in this order. kInternal where it is empty, the caller is not in it
  // or a member is named twice.
  Group subgroup(std::span<const int> ranks) const;
};

// kInternal at the call, before anything is enqueued, where the arguments are impossible.
//   in_parts, out_parts  in and out are so many equal parts: {1, size} for all_gather
void check_pair(const char* operation, const View& in, const View& out, size_t in_parts,
                size_t out_parts);
void check_root(const char* operation, int root, const Group& group);
void check_peer(const char* operation, int peer, const Group& group);

}  // namespace fleet
