// A whole ResNet50 training step: see image_step.h.
#pragma once

#include "tests/bench/image_step.h"

namespace fleet::bench {

class ResNet50Step : public ImageStep {
 public:
  // amp: mixed precision in the low type of the device's backend.
  ResNet50Step(Device& device, int64_t batch, bool amp)
      : ResNet50Step(device, batch, amp ? R"({"amp": true})" : "{}") {}
  // strategy: in JSON.
  ResNet50Step(Device& device, int64_t batch, const char* strategy)
      : ImageStep(device, "resnet50", batch, strategy) {}
};

}  // namespace fleet::bench
