// Brings what the host feeds to the device.
#pragma once

#include <memory>
#include <vector>

#include "exec/executor.h"

namespace fleet {

// On a device whose streams work beside the host, copies have a stream and device memory of their
// own, so that the next step's run while this one computes: feed() never waits for the device, and
// release() for little more than the copy. As the copies use kDepth buffers in turn, the host runs
// at most kDepth + 1 steps ahead. On the CPU it copies at once.
class Feeder {
 public:
  static constexpr int kDepth = 2;
  struct Feed {
    VarId var = kNoVar;
    const void* data = nullptr;  // plain layout
  };
  // vars: all that will be fed, always in this order.
  Feeder(Executor& executor, Device& device, const std::vector<VarId>& vars);
  ~Feeder();
  Feeder(const Feeder&) = delete;

  // Before the run that uses them. Data of at most kSmall bytes may change at once; larger one
  // stays as it is until release(), and is copied fastest from memory of Device::allocate_host().
  static constexpr size_t kSmall = size_t{1} << 20;
  void feed(const std::vector<Feed>& feeds);
  void release();

 private:
  struct Slot {
    Buffer device, host;  // what is small goes through memory that copies are fast from
    std::unique_ptr<Event> arrived, consumed;
    bool used = false;
  };
  Executor& executor_;
  Device& device_;
  const std::vector<VarId> vars_;
  std::vector<size_t> offsets_;  // in a slot's memory, of each var
  std::vector<Slot> slots_;      // none on the CPU
  size_t next_ = 0;
  Slot* last_ = nullptr;
  std::unique_ptr<Stream> copies_;  // behind what its work touches: it ends first
};

}  // namespace fleet
