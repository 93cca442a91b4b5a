// The device prefetcher: copies the host's batches to the device.
#pragma once

#include <memory>
#include <vector>

#include "exec/executor.h"

namespace fleet {

// On a device whose streams run in parallel to the host, copies use their own stream and device
// memory, so that the copies of the next step overlap the current one: feed() never waits for the
// device, and release() waits for little more than the copy. The copies use kDepth buffers in turn,
// so the host runs at most kDepth + 1 steps ahead. On the CPU it copies immediately.
class DevicePrefetcher {
 public:
  static constexpr int kDepth = 2;
  struct Feed {
    VarId var = kNoVar;
    ConstHostBytes data = std::span<const std::byte>();  // all of it, in plain layout
  };
  // vars: all variables to feed, always in this order.
  DevicePrefetcher(Executor& executor, Device& device, const std::vector<VarId>& vars);
  ~DevicePrefetcher();
  DevicePrefetcher(const DevicePrefetcher&) = delete;

  // Call before the run that uses the feeds. kInternal naming the variable if a size is not its
  // own. Data of at most kSmall bytes may change at once; larger data must stay unchanged until
  // release(), and is copied fastest from memory of Device::allocate_host().
  static constexpr size_t kSmall = size_t{1} << 20;
  void feed(const std::vector<Feed>& feeds);
  void release();

 private:
  struct Slot {
    Buffer device, host;  // small feeds are staged in host memory from which copies are fast
    std::unique_ptr<Event> arrived, consumed;
    bool used = false;
  };
  void check(const std::vector<Feed>& feeds) const;

  Executor& executor_;
  Device& device_;
  const std::vector<VarId> vars_;
  std::vector<size_t> offsets_;  // offset of each var in a slot's memory
  std::vector<Slot> slots_;      // empty on the CPU
  size_t next_ = 0;
  Slot* last_ = nullptr;
  std::unique_ptr<Stream> copies_;  // declared after what its work uses, so destroyed first
};

}  // namespace fleet
