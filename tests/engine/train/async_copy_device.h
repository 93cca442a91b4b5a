// The host as a device whose copies run concurrently, as a GPU's do.
#pragma once

#include "tensor/host.h"

namespace fleet {

// Streams with a name have threads of their own; what computes runs where it is issued.
class AsyncCopyDevice : public HostDevice {
 public:
  using HostDevice::HostDevice;
  bool runs_beside_host() const override { return true; }
};

}  // namespace fleet
