// Parameters to start from that another run, or another program, has trained.
#pragma once

#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/safetensors.h"

namespace fleet {

struct WeightsOptions {
  // Shell patterns (fnmatch(3)) of parameters that keep their initial values, whatever the file
  // has: "fc.*" for another number of classes.
  std::vector<std::string> skip;
  // Names of the job's classes that the file's, where it has names, must be; none: not compared.
  std::vector<std::string> classes = {};
};

// Writes the parameters and running statistics of a file of weights (read_weights(): safetensors,
// or torch.save()'s) to the executor. All names of the file may have a prefix that wrappers put
// there ("module.", "_orig_mod.", "model."); floating types become the model's. Returns lines on
// what was left out or changed. kUsage naming the file where it has not all that the model needs,
// or has more, but for what is skipped; errors of read_weights().
std::vector<std::string> load_weights(const std::string& path, const WeightsOptions& options,
                                      Executor& executor);

// The same of what was read from `path`.
std::vector<std::string> load_weights(TensorFile file, const std::string& path,
                                      const WeightsOptions& options, Executor& executor);

// The same values as another floating type. kUsage where one of the types is not floating.
HostTensor converted(const HostTensor& tensor, DType dtype);

}  // namespace fleet
