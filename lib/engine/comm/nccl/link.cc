#include <algorithm>
#include <utility>

#include "comm/nccl/handle.h"

namespace fleet::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPollInterval(50);  // interval of the watcher's checks
// How long a failure waits until a rank can be blamed.
constexpr std::chrono::seconds kExplanation(2);

}  // namespace

Link::Link(const CommOptions& options)
    : options_(options), group_{options.rank, options.size, options.names} {
  monitor_ =
      std::make_unique<PeerMonitor>(options_, group_, [this](const Error& error) { fail(error); });
  watcher_ = Thread("nccl-watch", [this] { watch(); });
}

Link::~Link() {
  const MutexLock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

bool Link::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (error_) return false;
  error_ = error;
  failed_ = true;
  changed_.notify_all();
  return true;
}

void Link::fail_and_report(const Error& error) {
  if (fail(error)) monitor_->report(error_for_peers(error, group_));
}

void Link::abort(const Error& why) { fail_and_report(why); }

void Link::throw_error() const {
  if (error_) throw *error_;
}

void Link::throw_if_failed() {
  const MutexLock lock(mutex_);
  if (any_broken()) {
    while (!error_) changed_.wait(mutex_);
  }
  throw_error();
}

std::string Link::wait_for_key(const std::string& key, RunningDeadline* deadline) {
  for (;;) {
    throw_if_failed();
    try {
      return options_.store->get(key,
                                 std::min(deadline->look_for(), std::chrono::milliseconds(500)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout || deadline->passed()) throw;
    }
  }
}

void Link::add_memory(void* memory, size_t bytes) {
  const MutexLock lock(mutex_);
  memories_.push_back({memory, bytes});
  for (Handle* handle : handles_) {
    handle->assert_locked();
    handle->register_memory(memory, bytes);
  }
}

void Link::remove_memory(void* memory) {
  const MutexLock lock(mutex_);
  // Bounded, because an abort may wait for CUDA graphs that the caller has yet to release.
  changed_.wait_for(mutex_, std::chrono::seconds(5),
                    [this]() FLEET_REQUIRES(mutex_) { return !aborting_; });
  std::erase_if(memories_, [&](const Memory& known) { return known.data == memory; });
  for (Handle* handle : handles_) {
    handle->assert_locked();
    handle->deregister_memory(memory);
  }
}

// Whether a communicator reports a failure. Stores the first report.
bool Link::any_broken() {
  if (error_ || broken_) return true;
  for (Handle* handle : handles_) {
    handle->assert_locked();
    const ncclResult_t state = handle->state();
    if (state == ncclSuccess || state == ncclInProgress) continue;
    report(state, "a collective", handle->comm_);
    return true;
  }
  return false;
}

// Whether a handle has a communicator that is not aborted.
bool Link::any_connected() const {
  for (const Handle* handle : handles_) {
    handle->assert_locked();
    if (handle->comm_) return true;
  }
  return false;
}

void Link::report(ncclResult_t result, std::string_view what, ncclComm_t comm) {
  if (error_ || broken_) return;
  broken_ = error_of(result, what, comm);
  // NCCL may report a peer's death this way before the peer monitor detects it.
  const bool maybe_a_peer = result == ncclRemoteError || result == ncclSystemError;
  broken_until_ = Clock::now() + (maybe_a_peer ? kExplanation : Clock::duration(0));
  changed_.notify_all();
}

void Link::watch() {
  cudaSetDevice(device());  // a failure is reported when a communicator is created
  // Another thread may be capturing. Relaxed mode keeps the calls here from disturbing it.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const MutexLock lock(mutex_);
  while (!stop_) {
    if (error_) {
      abort_handles();
      while (!stop_ && !any_connected()) changed_.wait(mutex_);
    } else {
      check_handles();
      if (!stop_ && !error_) changed_.wait_for(mutex_, kPollInterval);
    }
  }
}

// Aborts all at once: ncclCommAbort may wait for the release of a CUDA graph, which may wait for
// another communicator's kernel to end.
void Link::abort_handles() {
  std::vector<ncclComm_t> comms;
  for (Handle* handle : handles_) {
    handle->assert_locked();
    if (handle->comm_) comms.push_back(std::exchange(handle->comm_, nullptr));
  }
  aborting_ = !comms.empty();
  {
    const MutexUnlock unlock(mutex_);
    std::vector<Thread> threads;  // joined at the end of the block, without the lock
    for (ncclComm_t comm : comms) {
      threads.emplace_back("nccl-abort", [this, comm] {
        cudaSetDevice(device());
        ncclCommAbort(comm);
      });
    }
  }
  aborting_ = false;
  changed_.notify_all();
}

void Link::check_handles() {
  if (any_broken()) {
    if (error_ || Clock::now() < broken_until_) return;
    const Error error = *broken_;
    const MutexUnlock unlock(mutex_);
    fail_and_report(error);
    return;
  }
  // Handles may be created or destroyed while the lock is not held.
  const std::vector<Handle*> handles = handles_;
  for (Handle* handle : handles) {
    if (error_ || stop_) return;
    if (std::find(handles_.begin(), handles_.end(), handle) != handles_.end()) {
      handle->assert_locked();
      handle->check_progress();
    }
  }
}

}  // namespace fleet::nccl
