// The backend "nccl": communication between GPUs, within one host and across hosts.
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "base/env.h"
#include "base/log.h"
#include "comm/nccl/handle.h"

namespace fleet::nccl {
namespace {

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

char* at(const View& view, size_t element) {
  return static_cast<char*>(view.data) + element * size_of(view.dtype);
}

// NCCL works in place only if a rank's part is at its own position in the whole. If it lies
// elsewhere in the whole, it is copied first or last.
bool overlaps(const View& part, const View& whole) {
  return at(part, part.count) > at(whole, 0) && at(part, 0) < at(whole, whole.count);
}

void copy(void* to, const void* from, size_t bytes, Stream& stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(stream)),
        "cudaMemcpyAsync");
}

void log_interface(const Handle& handle) {
  std::string text =
      "NCCL " + version() + ", " + std::to_string(handle.members().size()) + " ranks";
  if (!handle.interface().empty()) text += ", bootstrap on " + handle.interface();
  const auto algorithm = get_env("NCCL_ALGO");
  text += algorithm ? ", algorithm " + *algorithm + " (NCCL_ALGO)"
                    : ", algorithm chosen by NCCL per size (NCCL_DEBUG=INFO shows it)";
  spdlog::info("{}", text);
}

std::unique_ptr<NcclCommunicator> NcclCommunicator::make(const CommOptions& options) {
  auto link = std::make_shared<Link>(options);
  std::vector<int> members(options.size);
  std::iota(members.begin(), members.end(), 0);
  auto handle = Handle::make(link, options.group, members, options.rank);
  if (options.rank == 0) log_interface(*handle);
  const Group group = link->group();
  return std::unique_ptr<NcclCommunicator>(
      new NcclCommunicator(std::move(link), std::move(handle), group));
}

NcclCommunicator::NcclCommunicator(std::shared_ptr<Link> link, std::unique_ptr<Handle> handle,
                                   Group group)
    : link_(std::move(link)),
      handle_(std::move(handle)),
      group_(std::move(group)),
      flag_(link_->options().device->allocate(sizeof(int32_t))) {}

Buffer NcclCommunicator::allocate(size_t bytes) {
  throw_if_failed();
  if (bytes == 0) return {};
  use_device(link_->device());
  void* memory = nullptr;
  const ncclResult_t result = ncclMemAlloc(&memory, bytes);
  if (result != ncclSuccess) {
    spdlog::debug("nccl: {}: gradients use ordinary memory", ncclGetErrorString(result));
    return link_->options().device->allocate(bytes);
  }
  const std::weak_ptr<Link> link = link_;
  Buffer buffer(std::shared_ptr<void>(memory,
                                      [link](void* p) {
                                        if (const auto owner = link.lock()) owner->remove_memory(p);
                                        ncclMemFree(p);
                                      }),
                bytes);
  check(cudaMemset(memory, 0, bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");  // streams do not wait for cudaMemset
  link_->add_memory(memory, bytes);
  return buffer;
}

std::unique_ptr<Communicator> NcclCommunicator::split(std::span<const int> ranks) {
  throw_if_failed();
  Group sub = group_.subgroup(ranks);
  const std::vector<int> key(ranks.begin(), ranks.end());
  std::string name = handle_->name() + "/split";
  std::vector<int> members;
  for (int rank : ranks) {
    members.push_back(handle_->members()[rank]);
    name += "." + std::to_string(rank);
  }
  name += "#" + std::to_string(splits_[key]++);
  auto handle = Handle::make(link_, name, std::move(members), sub.rank);
  return std::unique_ptr<Communicator>(
      new NcclCommunicator(link_, std::move(handle), std::move(sub)));
}

void NcclCommunicator::all_reduce(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("all_reduce", in, out, 1, 1);
  handle_->issue("all_reduce", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclAllReduce(in.data, out.data, in.count, type_of(in.dtype), operation_of(op), comm,
                         on);
  });
}

void NcclCommunicator::reduce(View in, View out, ReduceOp op, int root, Stream& stream) {
  check_root("reduce", root, group_);
  if (rank() == root) check_pair("reduce", in, out, 1, 1);
  handle_->issue("reduce", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclReduce(in.data, out.data, in.count, type_of(in.dtype), operation_of(op), root, comm,
                      on);
  });
}

void NcclCommunicator::broadcast(View data, int root, Stream& stream) {
  check_root("broadcast", root, group_);
  handle_->issue("broadcast", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclBroadcast(data.data, data.data, data.count, type_of(data.dtype), root, comm, on);
  });
}

void NcclCommunicator::all_gather(View in, View out, Stream& stream) {
  check_pair("all_gather", in, out, 1, size());
  const View place = {at(out, rank() * in.count), in.count, in.dtype};
  if (in.data != place.data && overlaps(in, out)) {
    use_device(link_->device());
    copy(place.data, in.data, in.bytes(), stream);
    in = place;
  }
  handle_->issue("all_gather", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclAllGather(in.data, out.data, in.count, type_of(in.dtype), comm, on);
  });
}

void NcclCommunicator::reduce_scatter(View in, View out, ReduceOp op, Stream& stream) {
  check_pair("reduce_scatter", in, out, size(), 1);
  const View place = {at(in, rank() * out.count), out.count, out.dtype};
  const View to = overlaps(out, in) ? place : out;
  handle_->issue("reduce_scatter", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclReduceScatter(in.data, to.data, out.count, type_of(in.dtype), operation_of(op), comm,
                             on);
  });
  if (to.data == out.data) return;
  use_device(link_->device());
  copy(out.data, to.data, out.bytes(), stream);
}

void NcclCommunicator::send(View data, int peer, Stream& stream) {
  check_peer("send", peer, group_);
  handle_->issue("send", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclSend(data.data, data.count, type_of(data.dtype), peer, comm, on);
  });
}

void NcclCommunicator::recv(View data, int peer, Stream& stream) {
  check_peer("recv", peer, group_);
  handle_->issue("recv", stream, [&](ncclComm_t comm, cudaStream_t on) {
    return ncclRecv(data.data, data.count, type_of(data.dtype), peer, comm, on);
  });
}

void NcclCommunicator::barrier(Stream& stream) {
  const View flag = {flag_.data(), 1, DType::kInt32};
  all_reduce(flag, flag, ReduceOp::kMax, stream);
}

}  // namespace

FLEET_COMM_BACKEND(nccl) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return NcclCommunicator::make(options);
  };
}

}  // namespace fleet::nccl
