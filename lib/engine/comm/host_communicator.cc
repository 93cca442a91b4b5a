#include "comm/host_communicator.h"

#include "tensor/host.h"

namespace fleet {

void HostCommunicator::all_reduce(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("all_reduce", in, out, 1, 1);
  HostStream::of(stream).enqueue([this, in, out, op] { do_all_reduce(in, out, op); });
}

void HostCommunicator::reduce(View in, View out, ReduceOp op, int root, Stream& stream) {
  check_root("reduce", root, group_);
  if (rank() == root) check_pair("reduce", in, out, 1, 1);
  HostStream::of(stream).enqueue([this, in, out, op, root] { do_reduce(in, out, op, root); });
}

void HostCommunicator::broadcast(View data, int root, Stream& stream) {
  check_root("broadcast", root, group_);
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
  check_peer("send", peer, group_);
  HostStream::of(stream).enqueue([this, data, peer] { do_send(data, peer); });
}

void HostCommunicator::recv(View data, int peer, Stream& stream) {
  check_peer("recv", peer, group_);
  HostStream::of(stream).enqueue([this, data, peer] { do_recv(data, peer); });
}

void HostCommunicator::barrier(Stream& stream) {
  HostStream::of(stream).enqueue([this] { do_barrier(); });
}

}  // namespace fleet
