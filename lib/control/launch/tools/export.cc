// fleetrun export JOB.json|CHECKPOINT: fleet-worker writes the trained model for other programs.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "base/file_status.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

int run_export(const CommandLine& line) {
  const Settings& given = line.settings;
  const std::string& from = line.words[0];
  if (!is_job_file(from) && !is_folder(from)) {
    refuse("'" + from + "' is neither a job file nor a checkpoint", "export",
           "give a job file (.json), or the folder of a checkpoint: checkpoints/step_N of a run");
  }
  const std::string &hf = given.text("hf"), &onnx = given.text("onnx");
  if (hf.empty() == onnx.empty()) {
    refuse(hf.empty() ? "no format is given" : "--hf and --onnx cannot be combined", "export",
           "give one of --hf DIR and --onnx FILE");
  }
  if (given.given("shard_size") && hf.empty()) {
    refuse("--shard_size requires --hf", "export", "leave it out");
  }
  std::vector<std::string> command = {default_worker_path(), from,
                                      hf.empty() ? "--export_onnx" : "--export_hf", hf + onnx};
  if (given.given("shard_size")) {
    command.insert(command.end(), {"--shard_size", given.text("shard_size")});
  }
  for (const std::string& override : given.texts("set")) {
    command.insert(command.end(), {"--set", override});
  }
  restore_file_size_signal();
  ::execv(command[0].c_str(), pointers_to(command).data());
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(errno), command[0],
              "install fleet-worker next to fleetrun");
}

}  // namespace

FLEET_COMMAND(export) {
  def.syntax = {
      .program = "fleetrun export",
      .words = "JOB.json|CHECKPOINT",
      .about =
          "write a trained model for transformers or as ONNX\n"
          "It takes the newest checkpoint of a job, or the one whose folder is given.",
      .least = 1,
      .most = 1,
      .missing_word = "give a job file or a checkpoint: fleetrun export job.json --hf model/"};
  def.syntax.options
      .text({.key = "hf", .value = "DIR", .optional = true}, "",
            "write a language model into this folder, as transformers 4.57 and 5 read it")
      .text({.key = "onnx", .value = "FILE", .optional = true}, "",
            "write the network to this ONNX file, as --export_onnx does")
      .text({.key = "shard_size", .value = "SIZE", .optional = true}, "",
            "largest file of weights, as 500M or 5G; without it: 50 GB")
      .texts({.key = "set", .value = "KEY=VALUE", .repeats = true},
             "override a key of the job file");
  def.run = run_export;
}

}  // namespace fleet
