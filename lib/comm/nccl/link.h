// What the NCCL communicators of one group and of the groups split from it share: the lifeline, the
// fate (a failure in one fails all), and a thread that watches over them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/factory.h"
#include "comm/lifeline.h"
#include "comm/nccl/library.h"

namespace fleet::nccl {

class Handle;

class Link {
 public:
  // Collective over the ranks of options, which names a device.
  explicit Link(const CommOptions& options);
  // After all handles.
  ~Link();
  Link(const Link&) = delete;

  const CommOptions& options() const { return options_; }
  const Group& group() const { return group_; }
  Lifeline& lifeline() { return *lifeline_; }
  int device() const { return options_.device->index(); }

  // Throws what has gone wrong, if something has; where NCCL says so only now, waits a moment for
  // who is to blame.
  void throw_if_failed();
  void abort(const Error& why);
  // Waits until the store has the key, no longer than until a failure or the deadline (kTimeout).
  std::string wait_for_key(const std::string& key, std::chrono::steady_clock::time_point deadline);

  // Memory that every handle, also of later groups, registers with NCCL.
  void add_memory(void* memory, size_t bytes);
  void remove_memory(void* memory);

 private:
  friend class Handle;
  struct Memory {
    void* data;
    size_t bytes;
  };

  bool fail(const Error& error);  // whether it is the first: only that one counts
  void fail_and_tell(const Error& error);
  // The following ones with mutex_ held.
  void throw_error() const;
  bool any_broken();
  void report(ncclResult_t result, const char* what, ncclComm_t comm);
  void watch();
  void abort_handles(std::unique_lock<std::mutex>& lock);
  void look_after_handles(std::unique_lock<std::mutex>& lock);

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  // Calls to NCCL are made one at a time: of what may run at once on a communicator, NCCL promises
  // only ncclCommAbort.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  std::vector<Handle*> handles_;
  std::vector<Memory> memories_;
  std::optional<Error> broken_;  // what NCCL reported, until it is known whose fault it is
  std::chrono::steady_clock::time_point broken_until_;
  bool stop_ = false;
  bool aborting_ = false;  // ncclCommAbort is at work, and may still touch registered memory
  std::unique_ptr<Lifeline> lifeline_;
  Thread watcher_;  // the last one: it ends before what it looks at
};

}  // namespace fleet::nccl
