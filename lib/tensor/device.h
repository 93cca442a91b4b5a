// Where tensors live and what orders work on them. Backends implement it; host.h is the host's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

// Work of one or more streams that was recorded once and is launched as one, again and again (a
// CUDA graph). It holds addresses and sizes as they were: memory that it touches stays where it is.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void launch(Stream& stream) = 0;  // in stream order; does not wait
};

// Bytes of a device's own memory.
struct DeviceMemory {
  size_t total = 0;      // 0: not known
  size_t available = 0;  // what allocate() can still give in all
};

// What a device tells of itself while it works.
struct Telemetry {
  double utilization = 0;  // percent of the last moments in which it computed
  size_t memory_used = 0;  // bytes, by everybody
  double clock = 0;        // MHz, of what computes
};

// What a device and its libraries may do. Names and defaults are those of Paddle 2.1's flags and
// strategy; a device without such a choice does not look at it.
struct DeviceOptions {
  bool deterministic = false;               // the same bits each time, on a CPU with one thread
  bool tensor_op_math = false;              // TF32 for float32 products and convolutions
  bool cudnn_exhaustive_search = false;     // measure algorithms, else heuristics
  int64_t conv_workspace_size_limit = 512;  // MiB, of one convolution
  double memory_fraction = 0.92;            // of the device's memory that may be taken
};

class Device {
 public:
  explicit Device(const DeviceOptions& options = {}) : options_(options) {}
  virtual ~Device() = default;
  const DeviceOptions& options() const { return options_; }
  virtual std::string name() const = 0;     // "cpu", "cuda:0"
  virtual std::string backend() const = 0;  // "cpu", "cuda": kernels are registered under it
  virtual int index() const { return 0; }   // of the backend's devices that this process sees
  // The transport that moves this device's memory between ranks ("nccl"); empty: it is the host's,
  // which every transport of comm/ can.
  virtual std::string communicator() const { return {}; }
  // Zeroed. Given back, it is used again: no work on it may be left. kNoMemory.
  virtual Buffer allocate(size_t bytes) = 0;
  virtual DeviceMemory memory() const { return {}; }
  // Nothing where the device, or the library that knows, says nothing.
  virtual std::optional<Telemetry> telemetry() { return std::nullopt; }
  // Lines for the log at start: model, versions.
  virtual std::vector<std::string> description() const { return {}; }
  // Whether streams work beside the host, which may then run ahead of them, also those named "".
  virtual bool runs_beside_host() const { return false; }
  virtual std::unique_ptr<Stream> make_stream(const std::string& name) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  // Between host and device or within it, in stream order; the host pointers stay valid until then.
  virtual void copy(void* to, const void* from, size_t bytes, Stream& stream) = 0;
  // Memory of the host that copies to and from this device are fastest with, and from which copy()
  // returns at once. Zeroed.
  virtual Buffer allocate_host(size_t bytes) = 0;
  // Calls `issue`, which issues work to `origin` and to streams that first wait for an event
  // recorded on `origin` in there, and that `origin` waits for in the end. The work does not run:
  // it is recorded. Null where the device cannot record; `issue` is then not called.
  virtual std::unique_ptr<Recording> record(Stream& /*origin*/,
                                            const std::function<void()>& /*issue*/) {
    return nullptr;
  }

 private:
  const DeviceOptions options_;
};

}  // namespace fleet
