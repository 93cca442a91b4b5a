// Facts about this machine that an explanation needs: memory, threads, data.
#pragma once

#include <optional>

#include "train/job.h"
#include "train/session.h"

namespace fleet {

// Bytes of memory that this machine, or the control group of this process, has left; 0: unknown.
size_t available_host_memory();

// The cores of each of so many ranks on this machine: OMP_NUM_THREADS, else an equal share of the
// cores that this process may use.
int threads_of_rank(int ranks_here);

// Seconds of processor time of this process so far.
double processor_seconds();

// Cost of a rank's input, measured by opening the data and making batches for a moment.
struct InputCost {
  size_t bytes = 0;             // memory of the source and of the batches made ahead
  double seconds = 0;           // core seconds for one batch
  std::vector<Column> columns;  // its data
  int64_t samples = 0;          // in the training data
};
// nullopt if the data cannot be opened here. An accelerator gets bytes instead of values.
std::optional<InputCost> measure_input(const Job& job, Device& device,
                                       const ProgramOptions& options);

// The number of training samples; nullopt if the data cannot be opened here.
std::optional<int64_t> training_samples(const Job& job, Device& device,
                                        const ProgramOptions& options);

}  // namespace fleet
