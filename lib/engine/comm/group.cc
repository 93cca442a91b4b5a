#include "comm/group.h"

#include <algorithm>

namespace fleet {
namespace {

void check(bool condition, const char* operation, const std::string& what) {
  if (condition) return;
  throw Error(ErrorCode::kInternal, what, operation, "the caller passed invalid arguments");
}

}  // namespace

std::string Group::name_of(const std::vector<int>& members) const {
  std::string text = members.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < members.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(names[members[i]]);
  }
  return text;
}

Group Group::subgroup(std::span<const int> ranks) const {
  Group sub;
  sub.rank = -1;
  sub.size = static_cast<int>(ranks.size());
  for (int i = 0; i < sub.size; ++i) {
    check(ranks[i] >= 0 && ranks[i] < size, "split", "no rank " + std::to_string(ranks[i]));
    check(std::count(ranks.begin(), ranks.end(), ranks[i]) == 1, "split",
          "rank " + std::to_string(ranks[i]) + " twice");
    if (ranks[i] == rank) sub.rank = i;
    sub.names.push_back(names[ranks[i]]);
  }
  check(sub.rank >= 0, "split", "the calling rank is not one of the ranks");
  return sub;
}

void check_pair(const char* operation, const View& in, const View& out, size_t in_parts,
                size_t out_parts) {
  check(in.dtype == out.dtype, operation,
        std::string("in is ") + name_of(in.dtype) + ", out is " + name_of(out.dtype));
  check(in.count * out_parts == out.count * in_parts, operation,
        std::to_string(in.count) + " elements in and " + std::to_string(out.count) + " out");
  check((in.data && out.data) || in.count == 0, operation, "a view without memory");
}

void check_root(const char* operation, int root, const Group& group) {
  check(root >= 0 && root < group.size, operation, "no root " + std::to_string(root));
}

void check_peer(const char* operation, int peer, const Group& group) {
  check(peer >= 0 && peer < group.size && peer != group.rank, operation,
        "no peer " + std::to_string(peer));
}

}  // namespace fleet
