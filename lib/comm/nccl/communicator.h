// The backend "nccl": between GPUs, in one host and across hosts.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/nccl/handle.h"

namespace fleet::nccl {

// Calls are enqueued on a stream of the device's; they may be captured in a CUDA graph, which must
// be gone before the communicator. NCCL chooses the algorithm (ring, tree, NVLS) by size. Sums of
// 16-bit types may be rounded at each hop. A rank's death reaches throw_if_failed() within an
// instant, a host's within 10 s; streams that were waiting for it then end.
class NcclCommunicator : public Communicator {
 public:
  // Collective over the ranks of options.
  static std::unique_ptr<NcclCommunicator> make(const CommOptions& options);

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  std::string name() const override { return "nccl"; }
  // Of NCCL's own allocator and registered with it, where that works; else of the device.
  Buffer allocate(size_t bytes) override;
  // Has ids of its own; shares the lifeline and the fate of this one.
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;

  void all_reduce(View in, View out, ReduceOp op, Stream& stream) override;
  void reduce(View in, View out, ReduceOp op, int root, Stream& stream) override;
  void broadcast(View data, int root, Stream& stream) override;
  void all_gather(View in, View out, Stream& stream) override;
  void reduce_scatter(View in, View out, ReduceOp op, Stream& stream) override;
  void send(View data, int peer, Stream& stream) override;
  void recv(View data, int peer, Stream& stream) override;
  void barrier(Stream& stream) override;
  void abort(const Error& why) override { handle_->link().abort(why); }
  void throw_if_failed() const override { handle_->link().throw_if_failed(); }
  void launched(Stream& stream) override { handle_->launched(stream); }

 private:
  NcclCommunicator(std::shared_ptr<Link> link, std::unique_ptr<Handle> handle, Group group);

  // The link outlives its handles.
  const std::shared_ptr<Link> link_;
  const std::unique_ptr<Handle> handle_;
  const Group group_;
  const Buffer flag_;  // what a barrier sums
  std::map<std::vector<int>, int> splits_;
};

}  // namespace fleet::nccl
