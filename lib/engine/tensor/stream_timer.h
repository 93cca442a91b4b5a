// Times of work on the streams of a device that runs next to the host, without waiting for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "tensor/device.h"

namespace fleet {

// Not thread-safe.
class StreamTimer {
 public:
  virtual ~StreamTimer() = default;
  static constexpr int kNoMark = -1;
  // Marks the end of the stream's present work. Returns the mark's number, from 0; kNoMark if none
  // is left. Does not wait.
  virtual int mark(Stream& stream) = 0;
  // Whether the stream has reached this mark. Does not wait.
  virtual bool reached(int mark) = 0;
  // When the streams reached the marks: CLOCK_MONOTONIC, in nanoseconds, by mark. Waits for them.
  virtual std::vector<int64_t> times() = 0;
};

// A backend's timers.
struct StreamTimerDef {
  // So many marks are made at once: marking allocates nothing.
  std::unique_ptr<StreamTimer> (*make)(const Device& device, size_t marks) = nullptr;
};
bool define_stream_timer(const std::string& backend, void (*define)(StreamTimerDef&));
// Null if the device's backend has no timers.
std::unique_ptr<StreamTimer> make_stream_timer(const Device& device, size_t marks);

// FLEET_STREAM_TIMER(cuda) { def.make = ...; }
#define FLEET_STREAM_TIMER(backend)                                    \
  FLEET_REGISTER(stream_timer_##backend, ::fleet::StreamTimerDef& def, \
                 ::fleet::define_stream_timer, #backend)

}  // namespace fleet
