// The configuration of a job file, with the values that override it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

struct JobLine {
  std::string file;                    // a job file, or the folder of a checkpoint
  std::vector<std::string> overrides;  // "key=value"
  std::string device;                  // "": from the job file
  int64_t ranks = 1;                   // that share data.global_batch_size
  bool servers = false;                // the job has parameter servers
  bool verbose = true;                 // log what flags and overrides change
};

// kUsage, kNotFound.
ConfigTree read_job_tree(const JobLine& line);

}  // namespace fleet
