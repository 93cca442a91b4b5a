// Streams, events and memory of the host.
#pragma once

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "tensor/device.h"

namespace fleet {

// A small closure stored in place, so that enqueueing does not allocate. Must be trivially copyable
// and at most 96 bytes.
class HostTask {
 public:
  HostTask() = default;
  template <typename F>
  explicit HostTask(F body, bool after_failure_too = false)
      : after_failure_too_(after_failure_too) {
    static_assert(sizeof(F) <= sizeof(storage_) && std::is_trivially_copyable_v<F>);
    std::memcpy(storage_, &body, sizeof body);
    call_ = [](void* storage) { (*static_cast<F*>(storage))(); };
  }
  void operator()() { call_(storage_); }
  bool after_failure_too() const { return after_failure_too_; }

 private:
  alignas(16) unsigned char storage_[96];
  void (*call_)(void*) = nullptr;
  bool after_failure_too_ = false;
};

// Total time that the calling thread has been blocked until work of other threads was done: events
// and streams of the host. In nanoseconds.
int64_t host_wait_ns();

class HostEvent : public Event {
 public:
  void synchronize() override;

 private:
  friend class HostStream;
  Mutex mutex_;
  CondVar changed_;
  uint64_t recorded_ FLEET_GUARDED_BY(mutex_) = 0;
  uint64_t completed_ FLEET_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ FLEET_GUARDED_BY(mutex_);
  uint64_t note_record();
  void complete(uint64_t which, std::exception_ptr error);
  void wait_for(uint64_t which);
};

// Runs tasks in order, on the caller (inline_execution) or on a thread of its own. After a task
// throws, later ones are skipped, and every synchronize() and every later event rethrows its error.
class HostStream : public Stream {
 public:
  static constexpr size_t kCapacity = 1024;  // queued tasks; enqueue() blocks beyond this
  // Name "" runs inline.
  explicit HostStream(const std::string& name);
  ~HostStream() override;

  template <typename F>
  void enqueue(F body) {
    push(HostTask(body));
  }
  void record(Event& event) override;
  void wait(Event& event) override;
  void synchronize() override;
  void* native_handle() override { return this; }
  // The HostStream that implements a Stream of the host device.
  static HostStream& of(Stream& stream) {
    return *static_cast<HostStream*>(stream.native_handle());
  }

 private:
  void push(HostTask task);
  void run();
  std::exception_ptr error();

  const bool inline_;
  Mutex mutex_;
  CondVar filled_, drained_;
  std::vector<HostTask> ring_ FLEET_GUARDED_BY(mutex_);
  uint64_t head_ FLEET_GUARDED_BY(mutex_) = 0;  // next to run
  uint64_t tail_ FLEET_GUARDED_BY(mutex_) = 0;  // next free
  bool stopping_ FLEET_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ FLEET_GUARDED_BY(mutex_);  // null if tasks run inline
  Thread thread_;
};

// Memory from the host's allocator, 64-byte aligned, with huge pages requested for large blocks.
// Copies run in stream order.
class HostDevice : public Device {
 public:
  using Device::Device;
  std::string name() const override { return "cpu"; }
  std::string backend() const override { return "cpu"; }
  Buffer allocate(size_t bytes) override;
  std::unique_ptr<Stream> make_stream(const std::string& name) override;  // "" runs inline
  std::unique_ptr<Event> make_event() override;
  void copy(void* to, const void* from, size_t bytes, Stream& stream) override;
  Buffer allocate_host(size_t bytes) override { return allocate(bytes); }
};

}  // namespace fleet
