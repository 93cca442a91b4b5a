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

  void issue(const CollectiveCall& call, Stream& stream) override;
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

// NCCL works in place only if a rank's part is at its own position in the whole. If it lies
// elsewhere in the whole, it is copied first or last.
bool overlaps(const View& part, const View& whole) {
  return part.at(part.count) > whole.at(0) && part.at(0) < whole.at(whole.count);
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

void NcclCommunicator::issue(const CollectiveCall& call, Stream& stream) {
  check_call(call, group_);
  if (call.kind == CollectiveKind::kBarrier) {
    const View flag = {flag_.data(), 1, DType::kInt32};
    return all_reduce(flag, flag, ReduceOp::kMax, stream);
  }
  View in = call.in, out = call.out;
  if (call.kind == CollectiveKind::kAllGather && overlaps(in, out)) {
    const View place = out.part(rank() * in.count, in.count);
    use_device(link_->device());
    if (in.data != place.data) copy(place.data, in.data, in.bytes(), stream);
    in = place;
  }
  if (call.kind == CollectiveKind::kReduceScatter && overlaps(out, in)) {
    out.data = in.at(rank() * out.count);
  }
  const ncclDataType_t type = type_of(in.dtype);
  const ncclRedOp_t op = operation_of(call.op);
  const int peer = call.peer;
  handle_->issue(name_of(call.kind), stream, [&](ncclComm_t comm, cudaStream_t on) {
    switch (call.kind) {
      case CollectiveKind::kAllReduce:
        return ncclAllReduce(in.data, out.data, in.count, type, op, comm, on);
      case CollectiveKind::kReduce:
        return ncclReduce(in.data, out.data, in.count, type, op, peer, comm, on);
      case CollectiveKind::kBroadcast:
        return ncclBroadcast(in.data, in.data, in.count, type, peer, comm, on);
      case CollectiveKind::kAllGather:
        return ncclAllGather(in.data, out.data, in.count, type, comm, on);
      case CollectiveKind::kReduceScatter:
        return ncclReduceScatter(in.data, out.data, out.count, type, op, comm, on);
      case CollectiveKind::kSend:
        return ncclSend(in.data, in.count, type, peer, comm, on);
      case CollectiveKind::kRecv:
        return ncclRecv(in.data, in.count, type, peer, comm, on);
      case CollectiveKind::kBarrier:
        break;
    }
    return ncclInvalidArgument;
  });
  if (out.data == call.out.data) return;
  use_device(link_->device());
  copy(call.out.data, out.data, out.bytes(), stream);
}

}  // namespace

FLEET_COMM_BACKEND(nccl) {
  def.make = [](const CommOptions& options) -> std::unique_ptr<Communicator> {
    return NcclCommunicator::make(options);
  };
}

}  // namespace fleet::nccl
