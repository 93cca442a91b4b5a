// The backend "nccl": communication between GPUs, within one host and across hosts.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/nccl/handle.h"

namespace fleet::nccl {

// Calls are enqueued on a stream of the device. They may be captured in a CUDA graph, which must be
// destroyed before the communicator. NCCL chooses the algorithm (ring, tree, NVLS) by size. Sums of
// 16-bit types may be rounded at each hop. throw_if_failed() reports a rank's death within an
// instant and a host's within 10 s; streams that were waiting for it then end.
class NcclCommunicator : public Communicator {
 public:
  // Collective over the ranks in `options`.
  static std::unique_ptr<NcclCommunicator> make(const CommOptions& options);

  int rank() const override { return group_.rank; }
  int size() const override { return group_.size; }
  std::string name() const override { return "nccl"; }
  // Allocated by NCCL and registered with it if possible; otherwise by the device.
  Buffer allocate(size_t bytes) override;
  // The new communicator has its own ids and shares this one's peer monitor; a failure in one fails
  // both.
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

  // The link must outlive its handles.
  const std::shared_ptr<Link> link_;
  const std::unique_ptr<Handle> handle_;
  const Group group_;
  const Buffer flag_;  // input and output of a barrier's sum
  std::map<std::vector<int>, int> splits_;
};

}  // namespace fleet::nccl
