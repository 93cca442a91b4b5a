#include "comm/host_communicator.h"

#include <algorithm>

#include "tensor/host.h"

namespace fleet {
namespace {

void check(bool condition, const char* operation, const std::string& what) {
  if (condition) return;
  throw Error(ErrorCode::kInternal, what, operation, "the caller gave impossible arguments");
}

void check_pair(const char* operation, const View& in, const View& out, size_t in_parts,
                size_t out_parts) {
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
  check(sub.rank >= 0, "split", "the calling rank is not among the ranks");
  return sub;
}

void HostCommunicator::all_reduce(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("all_reduce", in, out, 1, 1);
  HostStream::of(stream).enqueue([this, in, out, op] { do_all_reduce(in, out, op); });
}

void HostCommunicator::reduce(View in, View out, ReduceOp op, int root, Stream& stream) {
  check(root >= 0 && root < size(), "reduce", "no root " + std::to_string(root));
  if (rank() == root) check_pair("reduce", in, out, 1, 1);
  HostStream::of(stream).enqueue([this, in, out, op, root] { do_reduce(in, out, op, root); });
}

void HostCommunicator::broadcast(View data, int root, Stream& stream) {
  check(root >= 0 && root < size(), "broadcast", "no root " + std::to_string(root));
  HostStream::of(stream).enqueue([this, data, root] { do_broadcast(data, root); });
}

void HostCommunicator::all_gather(View in, View out, Stream& stream) {
  check_pair("all_gather", in, out, 1, size());
  HostStream::of(stream).enqueue([this, in, out] { do_all_gather(in, out); });
}

void HostCommunicator::reduce_scatter(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("reduce_scatter", in, out, size(), 1);
  HostStream::of(stream).enqueue([this, in, out, op] { do_reduce_scatter(in, out, op); });
}

void HostCommunicator::send(View data, int peer, Stream& stream) {
  check(peer >= 0 && peer < size() && peer != rank(), "send", "no peer " + std::to_string(peer));
  HostStream::of(stream).enqueue([this, data, peer] { do_send(data, peer); });
}

void HostCommunicator::recv(View data, int peer, Stream& stream) {
  check(peer >= 0 && peer < size() && peer != rank(), "recv", "no peer " + std::to_string(peer));
  HostStream::of(stream).enqueue([this, data, peer] { do_recv(data, peer); });
}

void HostCommunicator::barrier(Stream& stream) {
  HostStream::of(stream).enqueue([this] { do_barrier(); });
}

}  // namespace fleet
