// State shared by the NCCL communicators of one group and of the groups split from it: the peer
// monitor, the failure (one fails all), and a watcher thread.
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
#include "comm/nccl/library.h"
#include "comm/peer_monitor.h"

namespace fleet::nccl {

class Handle;

class Link {
 public:
  // Collective over the ranks in `options`, which must name a device.
  explicit Link(const CommOptions& options);
  // Destroy it after all handles.
  ~Link();
  Link(const Link&) = delete;

  const CommOptions& options() const { return options_; }
  const Group& group() const { return group_; }
  PeerMonitor& peer_monitor() { return *monitor_; }
  int device() const { return options_.device->index(); }

  // Throws the group's failure, if there is one. If only NCCL has reported it so far, waits a
  // moment for the rank to blame.
  void throw_if_failed();
  void abort(const Error& why);
  // Waits until the store has the key, a failure occurs, or the deadline passes (kTimeout).
  std::string wait_for_key(const std::string& key, std::chrono::steady_clock::time_point deadline);

  // Memory that every handle, including those of later groups, registers with NCCL.
  void add_memory(void* memory, size_t bytes);
  void remove_memory(void* memory);

 private:
  friend class Handle;
  struct Memory {
    void* data;
    size_t bytes;
  };

  bool fail(const Error& error);  // returns whether it is the first failure; later ones are ignored
  void fail_and_report(const Error& error);
  // Call the following functions with mutex_ held.
  void throw_error() const;
  bool any_broken();
  void report(ncclResult_t result, const char* what, ncclComm_t comm);
  void watch();
  void abort_handles(std::unique_lock<std::mutex>& lock);
  void check_handles(std::unique_lock<std::mutex>& lock);

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  // Serializes calls to NCCL: ncclCommAbort is the only call that NCCL allows concurrently with
  // others on a communicator.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  std::vector<Handle*> handles_;
  std::vector<Memory> memories_;
  std::optional<Error> broken_;  // NCCL's report, until the rank to blame is known
  std::chrono::steady_clock::time_point broken_until_;
  bool stop_ = false;
  bool aborting_ = false;  // ncclCommAbort is running and may still access registered memory
  std::unique_ptr<PeerMonitor> monitor_;
  Thread watcher_;  // the last member: it ends before the members it uses
};

}  // namespace fleet::nccl
