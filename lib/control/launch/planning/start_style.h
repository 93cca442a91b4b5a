// Output of the launcher at the start of a job, and the wording of its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/planning/launch_config.h"

namespace fleet {

struct LaunchRequest;

// All that decides it.
struct StartFacts {
  std::vector<std::string> options = {};  // on the command line, as written: "--selected-gpus=0"
  std::optional<TableStyle> table = {};   // --table; nullopt: not given
  std::string level = {};                 // --log_level
  bool as_torchrun = false;               // --compat=torchrun
  bool job_file = false;                  // the program is a job file
  std::string script = {};                // the beginning of its text; "" if it is not a script
};
// Pure. kTable: for job files, for Paddle's scripts and lines, and on request.
StartStyle start_style(const StartFacts& facts);

// Whether only Paddle's launchers have this option: not torchrun, accelerate, deepspeed, mpirun,
// srun or horovodrun. `option` as written.
bool is_only_paddles(const std::string& option);

// Reads the program's script, if it is one: at most 64 KiB of it. `options`: StartFacts::options.
StartFacts start_facts(const LaunchRequest& request, std::vector<std::string> options);

// The beginning of the script that the program runs: a .py, a module (looked for in this folder and
// in PYTHONPATH), a file that begins with "#!", or the argument of python or a shell. "" for
// other programs, and if it cannot be read.
std::string script_text(const std::vector<std::string>& program, ProgramKind kind);

// `arguments`: the options of a fleetrun that --via starts for this request. Adds --table if that
// fleetrun would choose another style: its options differ from those of the user's line.
void keep_start_style(const LaunchRequest& request, std::vector<std::string>* arguments);

}  // namespace fleet
