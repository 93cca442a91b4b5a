#include "comm/group.h"

#include <algorithm>

#include "tensor/host.h"

namespace fleet {
namespace {

void check(bool condition, std::string_view operation, const std::string& what) {
  if (condition) return;
  throw Error(ErrorCode::kInternal, what, std::string(operation),
              "the caller passed invalid arguments");
}

// in_parts, out_parts: number of equal parts in `in` and `out`, {1, size} for all_gather.
void check_pair(const CollectiveCall& call, size_t in_parts, size_t out_parts) {
  const std::string_view operation = name_of(call.kind);
  const View &in = call.in, &out = call.out;
  check(in.dtype == out.dtype, operation,
        std::string("in is ") + name_of(in.dtype) + ", out is " + name_of(out.dtype));
  check(in.count * out_parts == out.count * in_parts, operation,
        std::to_string(in.count) + " elements in and " + std::to_string(out.count) + " out");
  check((in.data && out.data) || in.count == 0, operation, "a view without memory");
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

void check_call(const CollectiveCall& call, const Group& group) {
  const bool known = call.peer >= 0 && call.peer < group.size;
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return check_pair(call, 1, 1);
    case CollectiveKind::kAllGather:
      return check_pair(call, 1, group.size);
    case CollectiveKind::kReduceScatter:
      return check_pair(call, group.size, 1);
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast:
      check(known, name_of(call.kind), "no root " + std::to_string(call.peer));
      if (call.kind == CollectiveKind::kReduce && call.peer == group.rank) check_pair(call, 1, 1);
      return;
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      return check(known && call.peer != group.rank, name_of(call.kind),
                   "no peer " + std::to_string(call.peer));
    case CollectiveKind::kBarrier:
      return;
  }
}

void HostCommunicator::issue(const CollectiveCall& call, Stream& stream) {
  check_call(call, group_);
  HostStream::of(stream).enqueue([this, call] { run(call); });
}

void HostCommunicator::run(const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
      return do_all_reduce(call.in, call.out, call.op);
    case CollectiveKind::kReduce:
      return do_reduce(call.in, call.out, call.op, call.peer);
    case CollectiveKind::kBroadcast:
      return do_broadcast(call.in, call.peer);
    case CollectiveKind::kAllGather:
      return do_all_gather(call.in, call.out);
    case CollectiveKind::kReduceScatter:
      return do_reduce_scatter(call.in, call.out, call.op);
    case CollectiveKind::kSend:
      return do_send(call.in, call.peer);
    case CollectiveKind::kRecv:
      return do_recv(call.in, call.peer);
    case CollectiveKind::kBarrier:
      return do_barrier();
  }
}

}  // namespace fleet
