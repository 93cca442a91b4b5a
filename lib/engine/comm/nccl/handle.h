// NCCL communicators, created within a deadline, watched, and aborted from any thread; and the link
// that those of one group share.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/running_clock.h"
#include "comm/factory.h"
#include "comm/nccl/collective_times.h"
#include "comm/nccl/library.h"
#include "comm/peer_monitor.h"

namespace fleet::nccl {

class Handle;

// State shared by the NCCL communicators of one group and of the groups split from it: the peer
// monitor, the failure (one fails all), and a watcher thread.
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
  std::string wait_for_key(const std::string& key, RunningDeadline* deadline);

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
  void report(ncclResult_t result, std::string_view what, ncclComm_t comm) FLEET_REQUIRES(mutex_);
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

// One NCCL communicator.
// NCCL calls on it never block the host (config.blocking = 0), so that a rank that waits for a dead
// one can abort at any point. (Environment variable NCCL_COMM_BLOCKING=1 makes them block again.)
class Handle {
 public:
  // Collective over `members` (ranks of the link; this is number `rank` of them). `name` must be
  // unique among the communicators of the store. kTimeout names the ranks that did not arrive.
  static std::unique_ptr<Handle> make(std::shared_ptr<Link> link, std::string name,
                                      std::vector<int> members, int rank);
  ~Handle();
  Handle(const Handle&) = delete;

  Link& link() { return *link_; }
  const std::vector<int>& members() const { return members_; }
  const std::string& name() const { return name_; }
  // The network interface that NCCL bootstraps on, if this rank made the first id; "" if unknown.
  const std::string& interface() const { return interface_; }
  // Calls call(ncclComm_t, cudaStream_t), which enqueues on the stream, and watches the enqueued
  // work. While the stream is being captured, the call is recorded instead; launched() watches each
  // launch.
  template <typename Call>
  void issue(std::string_view what, Stream& stream, const Call& call);
  void launched(Stream& stream);

 private:
  friend class Link;
  using Clock = std::chrono::steady_clock;
  // Work that an event was recorded after: all that this rank issued, up to operation `count`.
  struct Pending {
    cudaEvent_t done;
    uint64_t count;
  };

  Handle(std::shared_ptr<Link> link, std::string name, std::vector<int> members, int rank);
  void connect();
  // A link's handles are under its lock. Call it in the link, with the lock held.
  void assert_locked() const FLEET_ASSERT_CAPABILITY(link_->mutex_) {}
  void register_memory(void* memory, size_t bytes) FLEET_REQUIRES(link_->mutex_);
  void deregister_memory(void* memory) FLEET_REQUIRES(link_->mutex_);
  // ncclInProgress, or the result of the last call.
  ncclResult_t state() const FLEET_REQUIRES(link_->mutex_);
  // Waits for the end of the call; releases the lock while it waits. Throws its failure.
  void settle(ncclResult_t result, std::string_view what, uint64_t count)
      FLEET_REQUIRES(link_->mutex_);
  void track(cudaStream_t stream, uint64_t count) FLEET_REQUIRES(link_->mutex_);
  // Checks whether pending work has ended. Fails the link if a rank has left it or is late; *this
  // may be destroyed then.
  void check_progress() FLEET_REQUIRES(link_->mutex_);
  void drop_completed_work() FLEET_REQUIRES(link_->mutex_);
  std::vector<int> members_gone() const;
  // The members that delay operation `count`. Releases the lock while it runs.
  std::vector<int> members_behind(uint64_t count) FLEET_REQUIRES(link_->mutex_);
  Error stuck(std::string_view what) const;

  const std::shared_ptr<Link> link_;
  const std::string name_;
  const std::vector<int> members_;
  const int rank_;
  const uint64_t id_;  // the group's, for the peer monitor's counts
  std::string interface_;
  ncclComm_t comm_ FLEET_GUARDED_BY(link_->mutex_) = nullptr;  // null once abandoned
  // Memory, NCCL's handle.
  std::vector<std::pair<void*, void*>> registered_ FLEET_GUARDED_BY(link_->mutex_);
  std::vector<Pending> pending_ FLEET_GUARDED_BY(link_->mutex_);  // a ring of fixed size
  size_t first_ FLEET_GUARDED_BY(link_->mutex_) = 0;
  size_t pending_count_ FLEET_GUARDED_BY(link_->mutex_) = 0;
  // When pending work last ended or started to pend.
  // On the clock of check_progress(), which looks often.
  Clock::time_point moved_ FLEET_GUARDED_BY(link_->mutex_);
  RunningClock clock_ FLEET_GUARDED_BY(link_->mutex_){Clock::now(), std::chrono::seconds(1)};
  bool overdue_ FLEET_GUARDED_BY(link_->mutex_) = false;  // late, although no rank is behind
  bool busy_ FLEET_GUARDED_BY(link_->mutex_) = false;  // the watcher works on it without the lock
  CollectiveTimes times_ FLEET_GUARDED_BY(link_->mutex_);
};

template <typename Call>
void Handle::issue(std::string_view what, Stream& stream, const Call& call) {
  use_device(link_->device());
  const cudaStream_t on = stream_of(stream);
  const bool recorded = is_capturing(on);
  const uint64_t count = recorded ? 0 : link_->peer_monitor().begin_operation(id_);
  const MutexLock lock(link_->mutex_);
  link_->throw_error();
  const int measured = times_.begin(on, recorded);
  settle(call(comm_, on), what, count);
  times_.end(measured, on, recorded);
  if (!recorded) track(on, count);
}

}  // namespace fleet::nccl
