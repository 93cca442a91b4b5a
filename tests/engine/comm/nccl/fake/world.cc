#include "tests/engine/comm/nccl/fake/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "comm/reduce.h"

namespace fleet::fake_nccl {
namespace {

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return DType::kFloat32;
    case ncclFloat64:
      return DType::kFloat64;
    case ncclFloat16:
      return DType::kFloat16;
    case ncclBfloat16:
      return DType::kBFloat16;
    case ncclInt64:
      return DType::kInt64;
    case ncclInt32:
      return DType::kInt32;
    case ncclUint8:
      return DType::kUInt8;
    default:
      std::abort();
  }
}

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "fake NCCL: %s\n", what.c_str());
  std::abort();
}

void require_alike(const Operation& mine, const Operation& first) {
  require(mine.name == first.name && mine.count == first.count && mine.type == first.type &&
              mine.op == first.op && mine.root == first.root,
          mine.name + " of one rank meets " + first.name + " of another, or their sizes differ");
}

}  // namespace

void World::join() {
  const std::lock_guard lock(mutex_);
  ++joined_;
  changed_.notify_all();
}

bool World::complete() {
  const std::lock_guard lock(mutex_);
  return hanging_ || joined_ >= size_;
}

void World::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void World::run(int rank, uint64_t number, const Operation& operation,
                const std::atomic<bool>& aborted) {
  const size_t element = size_of(dtype_of(operation.type));
  const size_t parts = operation.name == "reduce_scatter" ? static_cast<size_t>(size_) : 1;
  const auto* in = static_cast<const char*>(operation.in);
  const size_t bytes = operation.count * parts * element;
  std::unique_lock lock(mutex_);
  if (hanging_ && size_ > 1) {
    changed_.wait(lock, [&] { return aborted.load(); });
    return;
  }
  Slot& slot = slots_[number];
  if (slot.inputs.empty()) slot.operation = operation;
  require_alike(operation, slot.operation);
  slot.inputs[rank].assign(in, in + bytes);
  changed_.notify_all();
  changed_.wait(lock,
                [&] { return aborted.load() || slot.inputs.size() == static_cast<size_t>(size_); });
  if (aborted) return;
  finish(rank, operation, slot);
  if (++slot.done == size_) slots_.erase(number);
}

void World::finish(int rank, const Operation& operation, Slot& slot) {
  const DType dtype = dtype_of(operation.type);
  const size_t bytes = operation.count * size_of(dtype);
  auto* out = static_cast<char*>(operation.out);
  const auto* in = static_cast<const char*>(operation.in);
  const std::string& name = operation.name;
  if (name == "broadcast") {
    std::memcpy(out, slot.inputs[operation.root].data(), bytes);
  } else if (name == "all_gather") {
    const bool apart = in + bytes <= out || in >= out + size_ * bytes;
    require(apart || in == out + rank * bytes, "all_gather of a part that is not in its place");
    for (int r = 0; r < size_; ++r) std::memcpy(out + r * bytes, slot.inputs[r].data(), bytes);
  } else if (name != "reduce" || rank == operation.root) {
    const size_t offset = name == "reduce_scatter" ? rank * bytes : 0;
    const bool apart = out + bytes <= in || out >= in + size_ * bytes;
    require(name != "reduce_scatter" || apart || out == in + offset,
            "reduce_scatter into a part that is not in its place");
    std::vector<const void*> from;
    for (int r = 0; r < size_; ++r) from.push_back(slot.inputs[r].data() + offset);
    void* to = out;
    const ReduceOp op = operation.op == ncclSum   ? ReduceOp::kSum
                        : operation.op == ncclMin ? ReduceOp::kMin
                                                  : ReduceOp::kMax;
    reduce_elements(dtype, op, &to, 1, from.data(), size_, operation.count);
  }
}

// As between GPUs, a sender waits for its receiver.
void World::send(int rank, const Message& message, const std::atomic<bool>& aborted) {
  const size_t bytes = message.count * size_of(dtype_of(message.type));
  const auto* data = static_cast<const char*>(message.data);
  std::unique_lock lock(mutex_);
  auto& box = mail_[{rank, message.peer}];
  box.emplace_back(data, data + bytes);
  changed_.notify_all();
  changed_.wait(lock, [&] { return aborted.load() || box.empty(); });
}

void World::recv(int rank, const Message& message, const std::atomic<bool>& aborted) {
  std::unique_lock lock(mutex_);
  auto& box = mail_[{message.peer, rank}];
  changed_.wait(lock, [&] { return aborted.load() || !box.empty(); });
  if (aborted) return;
  require(box.front().size() == message.count * size_of(dtype_of(message.type)),
          "a message of another size than its receiver expects");
  std::copy(box.front().begin(), box.front().end(), static_cast<char*>(message.data));
  box.erase(box.begin());
  changed_.notify_all();
}

}  // namespace fleet::fake_nccl
