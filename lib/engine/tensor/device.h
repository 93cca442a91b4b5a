// Devices: memory, streams and events of tensors. Backends implement it; host.h is the host's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

// A point in a stream's work. Can be recorded repeatedly; a wait refers to the latest record at the
// time of the call.
class Event {
 public:
  virtual ~Event() = default;
  // Blocks the host. Rethrows a failure of the stream before the record.
  virtual void synchronize() = 0;
};

// Ordered work. Calls enqueue and return; one thread issues to a stream at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;  // later work of this stream starts after the event
  virtual void synchronize() = 0;       // blocks the host; rethrows failures
  virtual void* native_handle() = 0;    // cudaStream_t, or the HostStream itself
};

// Work of one or more streams, recorded once and launched as a unit any number of times (a CUDA
// graph). It stores addresses and sizes, so memory that it uses must not move.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void launch(Stream& stream) = 0;  // in stream order; does not wait
};

// Bytes of a device's own memory.
struct DeviceMemory {
  size_t total = 0;      // 0: unknown
  size_t available = 0;  // that allocate() can still return in total
};

// Measurements of a device while it works.
struct Telemetry {
  double utilization = 0;  // percentage of recent time spent computing
  size_t memory_used = 0;  // bytes, by all processes
  double clock = 0;        // MHz, of the compute units
};

// Options of every device. A backend declares its own ones (BackendDef::options).
struct DeviceOptions {
  bool deterministic = false;  // the same bits each time; on a CPU with one thread
};

class Device {
 public:
  explicit Device(const DeviceOptions& options = {}) : options_(options) {}
  virtual ~Device() = default;
  const DeviceOptions& options() const { return options_; }
  virtual std::string name() const = 0;     // "cpu", "cuda:0"
  virtual std::string backend() const = 0;  // "cpu", "cuda"; kernels are registered under it
  virtual int index() const { return 0; }   // among the backend's devices visible to this process
  // The transport that moves this device's memory between ranks ("nccl"). Empty: host memory, which
  // every transport of comm/ moves.
  virtual std::string communicator() const { return {}; }
  // Zeroed. Freed memory is reused at once: no work on it may be pending. Throws kNoMemory.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual DeviceMemory memory() const { return {}; }
  // Empty if the device, or the library that measures it, reports nothing.
  virtual std::optional<Telemetry> telemetry() { return std::nullopt; }
  // Lines for the log at start: model, versions.
  virtual std::vector<std::string> description() const { return {}; }
  // Whether streams, including those named "", run asynchronously to the host.
  virtual bool runs_beside_host() const { return false; }
  virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  // Copies between host and device or within the device, in stream order. Host pointers must stay
  // valid until the copy is done.
  virtual void copy(void* to, const void* from, size_t bytes, Stream& stream) = 0;
  // Host memory with the fastest copies to and from this device; copy() returns immediately for it.
  // Zeroed.
  virtual Buffer allocate_host(size_t bytes) = 0;
  // Records work as a Recording instead of running it. `issue` issues work to `origin` and to
  // streams that first wait for an event recorded on `origin`, and that `origin` waits for at the
  // end. Null if the device cannot record; `issue` is then not called.
  virtual std::unique_ptr<Recording> record(Stream& /*origin*/,
                                            const std::function<void()>& /*issue*/) {
    return nullptr;
  }

 private:
  const DeviceOptions options_;
};

}  // namespace fleet
