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
  std::vector<std::string> formats;
  for (const char* format : {"hf", "onnx", "timm", "torchvision"}) {
    if (!given.text(format).empty()) formats.emplace_back(format);
  }
  if (formats.size() != 1) {
    refuse(formats.empty() ? "no format is given"
                           : "--" + formats[0] + " and --" + formats[1] + " cannot be combined",
           "export", "give one of --hf DIR, --onnx FILE, --timm DIR and --torchvision FILE");
  }
  if (given.given("shard_size") && formats[0] != "hf") {
    refuse("--shard_size requires --hf", "export", "leave it out");
  }
  std::vector<std::string> command = {default_worker_path(), from, "--export_" + formats[0],
                                      given.text(formats[0])};
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
          "write a trained model for transformers, timm or torchvision, or as ONNX\n"
          "It takes the newest checkpoint of a job, or the one whose folder is given.",
      .least = 1,
      .most = 1,
      .missing_word = "give a job file or a checkpoint: fleetrun export job.json --hf model/"};
  def.syntax.options
      .text({.key = "hf", .value = "DIR", .optional = true}, "",
            "write a language model into this folder, as transformers 4.57 and 5 read it")
      .text({.key = "onnx", .value = "FILE", .optional = true}, "",
            "write the network to this ONNX file, as --export_onnx does")
      .text({.key = "timm", .value = "DIR", .optional = true}, "",
            "write a network of images into this folder, as timm reads it")
      .text({.key = "torchvision", .value = "FILE", .optional = true}, "",
            "write the weights of a network of images as torchvision names them: .pth, or "
            ".safetensors")
      .text({.key = "shard_size", .value = "SIZE", .optional = true}, "",
            "largest file of weights, as 500M or 5G; without it: 50 GB")
      .texts({.key = "set", .value = "KEY=VALUE", .repeats = true},
             "override a key of the job file");
  def.run = run_export;
}

}  // namespace fleet
