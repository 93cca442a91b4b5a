#include "tensor/host.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/error.h"

namespace fleet {
namespace {

// host_wait_ns(). Begins with 1, so that every program has a section .tdata: without one, mold
// before 2.4 may begin the read-only part of the data before its segment, and the program does not
// start.
thread_local int64_t waited_ns = 1;

// Adds its own lifetime to it.
class HostWaitTimer {
 public:
  HostWaitTimer() : begun_(Clock::now()) {}
  ~HostWaitTimer() {
    waited_ns +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_).count();
  }
  HostWaitTimer(const HostWaitTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun_;
};

}  // namespace

int64_t host_wait_ns() { return waited_ns - 1; }

uint64_t HostEvent::note_record() {
  const MutexLock lock(mutex_);
  return ++recorded_;
}

void HostEvent::complete(uint64_t which, std::exception_ptr error) {
  const MutexLock lock(mutex_);
  completed_ = which;
  if (error) error_ = std::move(error);
  // Notify under the lock: a waiter may destroy the event as soon as it holds the lock again.
  changed_.notify_all();
}

void HostEvent::wait_for(uint64_t which) {
  const MutexLock lock(mutex_);
  if (completed_ < which) {
    const HostWaitTimer waiting;
    while (completed_ < which) changed_.wait(mutex_);
  }
  if (error_) std::rethrow_exception(error_);
}

void HostEvent::synchronize() {
  uint64_t which = 0;
  {
    const MutexLock lock(mutex_);
    which = recorded_;
  }
  wait_for(which);
}

HostStream::HostStream(const std::string& name) : inline_(name.empty()) {
  if (inline_) return;
  ring_.resize(kCapacity);
  thread_ = Thread(name, [this] { run(); });
}

HostStream::~HostStream() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  filled_.notify_all();
}

std::exception_ptr HostStream::error() {
  const MutexLock lock(mutex_);
  return error_;
}

void HostStream::push(HostTask task) {
  if (inline_) {
    task();
    return;
  }
  {
    const MutexLock lock(mutex_);
    while (tail_ - head_ >= kCapacity) drained_.wait(mutex_);
    ring_[tail_++ % kCapacity] = task;
  }
  filled_.notify_one();
}

void HostStream::run() {
  for (;;) {
    HostTask task;
    bool failed = false;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && head_ == tail_) filled_.wait(mutex_);
      if (head_ == tail_) return;  // stopping, and the queue is empty
      task = ring_[head_ % kCapacity];
      failed = error_ != nullptr;
    }
    std::exception_ptr error;
    if (!failed || task.after_failure_too()) {
      try {
        task();
      } catch (...) {
        error = std::current_exception();
      }
    }
    {
      const MutexLock lock(mutex_);
      if (error) error_ = error;
      ++head_;
    }
    drained_.notify_all();
  }
}

void HostStream::record(Event& event) {
  auto* host = static_cast<HostEvent*>(&event);
  const uint64_t which = host->note_record();
  if (inline_) {
    host->complete(which, nullptr);
    return;
  }
  // Completed even after a failure, so that no thread waits forever.
  push(HostTask([this, host, which] { host->complete(which, error()); }, true));
}

void HostStream::wait(Event& event) {
  auto* host = static_cast<HostEvent*>(&event);
  uint64_t which = 0;
  {
    const MutexLock lock(host->mutex_);
    which = host->recorded_;
  }
  push(HostTask([host, which] { host->wait_for(which); }));
}

void HostStream::synchronize() {
  const MutexLock lock(mutex_);
  if (head_ != tail_) {
    const HostWaitTimer waiting;
    while (head_ != tail_) drained_.wait(mutex_);
  }
  if (error_) std::rethrow_exception(error_);
}

Buffer HostDevice::allocate(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes == 0) return {};
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size);
  if (!memory) {
    throw Error(ErrorCode::kNoMemory,
                "cannot allocate " + std::to_string(bytes >> 20) + " MiB of host memory", {},
                "use a smaller batch or model");
  }
  if (size >= kHugePage) ::madvise(memory, size, MADV_HUGEPAGE);
  std::memset(memory, 0, size);
  return Buffer(std::shared_ptr<void>(memory, std::free), bytes);
}

std::unique_ptr<Stream> HostDevice::make_stream(const std::string& name) {
  return std::make_unique<HostStream>(name);
}

std::unique_ptr<Event> HostDevice::make_event() { return std::make_unique<HostEvent>(); }

void HostDevice::copy(void* to, const void* from, size_t bytes, Stream& stream) {
  HostStream::of(stream).enqueue([=] { std::memcpy(to, from, bytes); });
}

}  // namespace fleet
