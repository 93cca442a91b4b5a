// The device of the tests of operations: one executable per device, from the same test files.
#pragma once

#include "exec/plan.h"
#include "tensor/device.h"

namespace fleet {

Device& op_device();
// Options for making a Plan for this device.
PlanOptions op_plan_options();

// Types and layouts in which check_op() runs a check that does not choose them; the first is
// float32 in the plain layout.
struct OpVariant {
  DType dtype = DType::kFloat32;
  bool channels_last = false;  // inputs of four dimensions lie so
  int channel_block = 1;       // and are padded to so many channels
};
const std::vector<OpVariant>& op_variants();

// Whether operations may lack a kernel on the device: those on libraries, on the emulated GPU.
bool op_may_lack_kernel();

}  // namespace fleet
