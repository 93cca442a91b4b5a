// State shared by the NCCL communicators of one group and of the groups split from it: the peer
// monitor, the failure (one fails all), and a watcher thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
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

  // Throws if the group has failed. If only NCCL has reported it so far, waits a
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
  void throw_error() const FLEET_REQUIRES(mutex_);
  bool any_broken() FLEET_REQUIRES(mutex_);
  bool any_connected() const FLEET_REQUIRES(mutex_);
  void report(ncclResult_t result, const char* what, ncclComm_t comm) FLEET_REQUIRES(mutex_);
  void watch();
  // These release the lock for a while.
  void abort_handles() FLEET_REQUIRES(mutex_);
  void check_handles() FLEET_REQUIRES(mutex_);

  const CommOptions options_;
  const Group group_;
  std::atomic<bool> failed_{false};
  // Serializes calls to NCCL: ncclCommAbort is the only call that NCCL allows concurrently with
  // others on a communicator.
  Mutex mutex_;
  CondVar changed_;
  std::optional<Error> error_ FLEET_GUARDED_BY(mutex_);
  std::vector<Handle*> handles_ FLEET_GUARDED_BY(mutex_);
  std::vector<Memory> memories_ FLEET_GUARDED_BY(mutex_);
  // NCCL's report, until the rank to blame is known.
  std::optional<Error> broken_ FLEET_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point broken_until_ FLEET_GUARDED_BY(mutex_);
  bool stop_ FLEET_GUARDED_BY(mutex_) = false;
  // ncclCommAbort is running and may still access registered memory.
  bool aborting_ FLEET_GUARDED_BY(mutex_) = false;
  std::unique_ptr<PeerMonitor> monitor_;
  Thread watcher_;  // the last member: it ends before the members it uses
};

}  // namespace fleet::nccl
