// fleetrun pack FILE DIR: fleet-worker writes the images of a job file into few large files.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "store/worker_options.h"

namespace fleet {
namespace {

int run_pack(const CommandLine& line) {
  const Settings& given = line.settings;
  if (!is_job_file(line.words[0])) {
    refuse("'" + line.words[0] + "' is not a job file", "pack",
           "give a job file (.json): its images are packed");
  }
  // Finds the worker, and refuses what does not exist.
  std::vector<std::string> command = rank_command({line.words[0]}, default_worker_path());
  command.insert(command.end(), {"--pack", line.words[1]});
  for (const std::string& override : given.texts("set")) {
    command.insert(command.end(), {"--set", override});
  }
  for (const char* flag : {"raw", "jpeg"}) {
    if (given.boolean(flag)) command.push_back(std::string("--") + flag);
  }
  for (const char* option : {"size", "quality", "pack_threads"}) {
    const int64_t value = given.integer(option);
    if (value > 0)
      command.insert(command.end(), {std::string("--") + option, std::to_string(value)});
  }
  restore_file_size_signal();
  ::execv(command[0].c_str(), pointers_to(command).data());
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(errno), command[0],
              "install fleet-worker next to fleetrun");
}

}  // namespace

FLEET_COMMAND(pack) {
  def.syntax = {.program = "fleetrun pack",
                .words = "FILE DIR",
                .about =
                    "pack a job's images into a few large files, for data.source packed\n"
                    "FILE is a job file; its training and test images are written to DIR. If "
                    "the\ncommand was interrupted, run it again to continue.",
                .least = 2,
                .most = 2,
                .missing_word = "give a job file and a folder: fleetrun pack job.json packed/"};
  def.syntax.options.include(pack_options())
      .texts({.key = "set", .value = "KEY=VALUE", .repeats = true},
             "override a key of the job file");
  def.run = run_pack;
}

}  // namespace fleet
