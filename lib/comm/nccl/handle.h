// One communicator of NCCL's: made within a deadline, watched, and given up from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/nccl/link.h"

namespace fleet::nccl {

// NCCL's calls on it never block the host (config.blocking = 0), so that a rank that waits for a
// dead one can give up at any point. (Environment NCCL_COMM_BLOCKING=1 makes them block again.)
class Handle {
 public:
  // Collective over `members` (ranks of the link, of which this is number `rank`). `name` tells it
  // apart from all other communicators of the store. kTimeout names the ranks that did not come.
  static std::unique_ptr<Handle> make(std::shared_ptr<Link> link, std::string name,
                                      std::vector<int> members, int rank);
  ~Handle();
  Handle(const Handle&) = delete;

  Link& link() { return *link_; }
  const std::vector<int>& members() const { return members_; }
  const std::string& name() const { return name_; }
  // The interface that NCCL starts on, where this rank made the first id; "" where it cannot be
  // told.
  const std::string& interface() const { return interface_; }
  // Calls call(ncclComm_t, cudaStream_t), which enqueues on the stream, and watches over it. While
  // the stream is captured it is recorded; launched() watches over each launch.
  template <typename Call>
  void issue(const char* what, Stream& stream, const Call& call);
  void launched(Stream& stream);

 private:
  friend class Link;
  using Clock = std::chrono::steady_clock;
  // Work behind which an event was recorded: all that this rank issued, up to operation `count`.
  struct Pending {
    cudaEvent_t done;
    uint64_t count;
  };

  Handle(std::shared_ptr<Link> link, std::string name, std::vector<int> members, int rank);
  void connect();
  // The following ones with the link's lock held.
  void register_memory(void* memory, size_t bytes);
  void deregister_memory(void* memory);
  ncclResult_t state() const;  // ncclInProgress, or how the last call ended
  // Waits until the call is no longer in progress; throws what went wrong.
  void settle(std::unique_lock<std::mutex>& lock, ncclResult_t result, const char* what,
              uint64_t count);
  void track(cudaStream_t stream, uint64_t count);
  // Looks whether pending work has ended; fails the link where a rank has left it or is late.
  void look_after(std::unique_lock<std::mutex>& lock);
  void forget_ended_work();
  std::vector<int> members_gone() const;
  // The members that keep operation `count` from ending. Without the lock meanwhile.
  std::vector<int> members_behind(std::unique_lock<std::mutex>& lock, uint64_t count);
  Error stuck(const char* what) const;

  const std::shared_ptr<Link> link_;
  const std::string name_;
  const std::vector<int> members_;
  const int rank_;
  const uint64_t id_;  // of the group, for the lifeline's counts
  std::string interface_;
  // The rest is the link's lock's.
  ncclComm_t comm_ = nullptr;                        // null once it is given up
  std::vector<std::pair<void*, void*>> registered_;  // memory, NCCL's handle
  std::vector<Pending> pending_;                     // a ring of fixed size
  size_t first_ = 0, pending_count_ = 0;
  Clock::time_point moved_;  // when pending work last ended, or began to pend
  bool overdue_ = false;     // it is late, though nobody is behind
  bool busy_ = false;        // the watcher works for it without the lock
};

template <typename Call>
void Handle::issue(const char* what, Stream& stream, const Call& call) {
  use_device(link_->device());
  const cudaStream_t on = stream_of(stream);
  const bool recorded = is_capturing(on);
  const uint64_t count = recorded ? 0 : link_->lifeline().enter(id_);
  std::unique_lock lock(link_->mutex_);
  link_->throw_error();
  settle(lock, call(comm_, on), what, count);
  if (!recorded) track(on, count);
}

}  // namespace fleet::nccl
