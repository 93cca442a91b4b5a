// The command line of fleet-worker.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"
#include "store/env.h"

namespace fleet {

struct WorkerArguments {
  std::string job_file;
  std::string device;                  // "": as the job file says
  std::vector<std::string> overrides;  // "key=value"
  std::string log_level = env_or(kEnvLogLevel, "INFO");
  std::vector<std::string> predict;  // images, folders, lists
  bool print_config = false;
  bool print_keys = false;
  bool print_plan = false;
  std::string print_program;   // "", "text" or "dot"
  std::string print_flags;     // "", "text" or "markdown"
  std::string save_strategy;   // "": no
  std::string paddle = "2.6";  // the release that is to read it
  std::string export_onnx;     // "": no
  bool profile = false;
};

// Returns false where it has printed help or the version and nothing is left to do. kUsage on bad
// arguments.
bool parse_arguments(int argc, char** argv, WorkerArguments* arguments);

}  // namespace fleet
