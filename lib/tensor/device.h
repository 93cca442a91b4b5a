// Where tensors live and what orders work on them. Backends implement it; host.h is the host's own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fleet {

// A piece of a device's memory; copies share it. Aligned to at least 64 bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<void> memory, size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

// A point in a stream's work. Recorded again and again; waiting means for the latest record at the
// time of the call.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the host. Rethrows what failed in the stream before the record.
  virtual void synchronize() = 0;
};

// Work in order. Calls enqueue and return; one thread issues to a stream at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;  // later work of this stream starts after the event
  virtual void synchronize() = 0;       // blocks the host; rethrows what failed
  virtual void* native_handle() = 0;    // cudaStream_t, or the HostStream itself
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;       // "cpu", "cuda:0"
  virtual std::string backend() const = 0;    // "cpu", "cuda": kernels are registered under it
  virtual Buffer allocate(size_t bytes) = 0;  // zeroed
  virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  // Between host and device or within it, in stream order; the host pointers stay valid until then.
  virtual void copy(void* to, const void* from, size_t bytes, Stream& stream) = 0;
};

}  // namespace fleet
