// Measures the rates of this machine with a short benchmark, or takes them from the cache.
#pragma once

#include <functional>

#include "cost/rates.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace fleet {

struct MeasureOptions {
  int ranks_here = 1;  // ranks that compute on this machine at the same time
  int threads = 1;     // cores of each of them
  bool low = false;    // also mixed precision's 16-bit type
  bool again = false;  // measure even if the cache has the rates
  std::string device;  // train.device of the job, resolved: "cpu" or an accelerator
};

// Bytes a second that an operation reads and writes together, on `count` floats: more than caches
// hold.
double measure_bandwidth(Device& device, int64_t count);
// Operations a second (a multiplication and an addition are two) of a product of square matrices
// with `size` rows.
double measure_products(Device& device, DType dtype, int64_t size);

// The file of these rates below the user's cache folder; "" if the user has no cache folder.
std::string rates_file_of(const MeasureOptions& options);

// From the cache (unless `again`), or measured, in some 10 to 30 seconds, and written there. Logs a
// line before it measures. Computes with as many threads as ranks work on the machine;
// OMP_NUM_THREADS says with how many cores each.
MachineRates measured_rates(const MeasureOptions& options);

}  // namespace fleet
