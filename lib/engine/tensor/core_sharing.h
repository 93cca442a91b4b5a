// Interface of devices that compute on cores of the host.
#pragma once

#include <functional>
#include <span>

#include "tensor/device.h"

namespace fleet {

// Not thread-safe: use it from the thread that issues work.
class CoreSharing {
 public:
  virtual ~CoreSharing() = default;
  // Cores that compute an operation that runs alone.
  virtual int cores() const = 0;
  // Streams that can compute at once without taking cores from each other.
  virtual int max_streams() const = 0;
  // Runs body with 1 / parts of the cores, at least one: body makes or runs kernels that share the
  // device with others.
  virtual void with_share(int parts, const std::function<void()>& body) = 0;
  // Collects what `issue` gives to `streams`, which run inline, then runs all of them at once, each
  // with its share of the cores. Work for other streams starts as usual. Returns when `streams`
  // are done. Rethrows the first failure.
  virtual void run_together(std::span<Stream* const> streams,
                            const std::function<void()>& issue) = 0;
};

}  // namespace fleet
