// Initial parameters from a file that another run or another program wrote.
#pragma once

#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/safetensors.h"

namespace fleet {

struct WeightsOptions {
  // Shell patterns (fnmatch(3)) of parameters that keep their initial values, whatever the file
  // contains: "fc.*" for a different number of classes.
  std::vector<std::string> skip;
  // Class names of the job; if the file has class names, they must be the same. Empty: not
  // compared.
  std::vector<std::string> classes = {};
  // Whether every parameter must have a value in the file, because none will be trained: `skip`
  // then only excuses content of the file that the model does not have.
  bool complete = false;
};

// Writes the parameters and running statistics of a file of weights (read_weights(): safetensors,
// or torch.save()'s, or an index of several) to the executor. A prefix that all its names have
// before the model's ("module.", "net."), except for skipped ones, is removed; floating-point types
// are converted to the model's; tensors of other types that the model lacks are ignored. Returns
// lines about ignored or changed content. kUsage naming the file if it lacks anything that the
// model needs, or has more, except for skipped names, or if no parameter would be read; errors of
// read_weights().
std::vector<std::string> load_weights(const std::string& path, const WeightsOptions& options,
                                      Executor& executor);

// Like the above, for tensors that were read from `path`.
std::vector<std::string> load_weights(TensorFile file, const std::string& path,
                                      const WeightsOptions& options, Executor& executor);

// The same values as another floating-point type. kUsage if one of the types is not floating-point.
HostTensor converted(const HostTensor& tensor, DType dtype);

}  // namespace fleet
