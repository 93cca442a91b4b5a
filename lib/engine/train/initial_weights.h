// Initial parameters from a file that another run or another program wrote.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "train/job.h"
#include "train/pretrained_record.h"
#include "train/safetensors.h"

namespace fleet {

struct WeightsOptions {
  // Shell patterns (fnmatch(3)) of parameters that keep their initial values, whatever the file
  // contains: "fc.*" for a different number of classes.
  std::vector<std::string> skip;
  // More names that a pattern may match without effect, such as heads of other tasks.
  std::set<std::string> unused = {};
  // Class names of the job; if the file has class names, they must be the same. Empty: not
  // compared.
  std::vector<std::string> classes = {};
  // Whether every parameter must have a value in the file, because none will be trained: `skip`
  // then only excuses content of the file that the model does not have.
  bool complete = false;
  // Whether the program is the network without its heads: what it does not have is left out.
  bool headless = false;
  // The job's network, if it is one of images: its rules for other programs' names, sizes and
  // channels hold (models/weight_layout.h).
  std::string network = {};
  // The file's own record. Unless `complete`, its last layer is initialized if the classes differ.
  std::optional<PretrainedRecord> record = {};
};

// The options for the file or folder with which a job starts: skip, network and record. metadata:
// the file's.
WeightsOptions weights_options(const Job& job, const std::string& path,
                               const std::map<std::string, std::string>& metadata);

// Checks that each pattern of checkpoint.weights_skip matches something: a parameter or statistic
// of the program, or one of the names that `in_file` returns, which is called only if it is needed.
// kUsage naming the first pattern that does not.
void check_weights_skip(const std::vector<std::string>& patterns, const Program& program,
                        const std::function<std::set<std::string>()>& in_file);
// For the file of a job's checkpoint.weights, if it has one. Errors of read_weights() if it is
// needed.
void check_weights_skip(const Job& job, const Program& program);

// Writes the parameters and running statistics of a file of weights (read_weights(): safetensors,
// or torch.save()'s, or an index of several) to the executor. A prefix that all its names have
// before the model's ("module.", "net."), except for skipped ones, is removed; floating-point types
// are converted to the model's; tensors of other types that the model lacks are ignored. Returns
// lines about ignored or changed content. kUsage naming the file if it lacks anything that the
// model needs, or has more, except for skipped names, or if no parameter would be read; unless
// `complete`, errors of check_weights_skip(); errors of read_weights().
std::vector<std::string> load_weights(const std::string& path, const WeightsOptions& options,
                                      Executor& executor);

// Like the above, for tensors that were read from `path`.
std::vector<std::string> load_weights(TensorFile file, const std::string& path,
                                      const WeightsOptions& options, Executor& executor);

// Checks names, shapes and types of a file of weights as load_weights() does, for the program that
// would be its executor's; the values are not read. Returns its lines; its errors.
std::vector<std::string> check_weights(TensorFile file, const std::string& path,
                                       const WeightsOptions& options, const Program& program);

// Gives the tensors of a file the names, shapes and types of the program's parameters and
// statistics, as load_weights() does. Returns its lines; its errors.
std::vector<std::string> fit_weights(const std::string& path, const WeightsOptions& options,
                                     const Program& program, TensorFile* file);

// The same values as another floating-point type. kUsage if one of the types is not floating-point.
HostTensor converted(const HostTensor& tensor, DType dtype);

}  // namespace fleet
