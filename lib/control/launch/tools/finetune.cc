// fleetrun finetune FOLDER --weights WEIGHTS: writes the job of a folder of photographs, and runs
// it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_size_signal.h"
#include "base/file_status.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

struct FineTuning {
  std::string folder, weights;
  std::vector<std::string> launcher, job;  // other words, of fleetrun and behind the job file
};

// `--set key=value` and `--device cpu` are the job's; everything else is an option of fleetrun.
bool is_of_job(const std::string& word) {
  for (const std::string option : {"--set", "--device", "--profile"}) {
    if (word == option || word.starts_with(option + "=")) return true;
  }
  return false;
}

FineTuning fine_tuning_of(const std::vector<std::string>& words) {
  FineTuning given;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool has_next = i + 1 < words.size();
    if (word == "--weights" && has_next) {
      given.weights = words[++i];
    } else if (word.starts_with("--weights=")) {
      given.weights = word.substr(word.find('=') + 1);
    } else if (is_of_job(word)) {
      given.job.push_back(word);
      const bool takes_next = word == "--set" || word == "--device";
      if (takes_next && has_next) given.job.push_back(words[++i]);
    } else if (given.folder.empty() && !word.starts_with('-') && is_folder(word)) {
      given.folder = word;
    } else {
      given.launcher.push_back(word);
    }
  }
  return given;
}

// The job file of a folder: "photos.json" in the working directory. Never replaces another one.
std::string write_fine_tuning_job(const FineTuning& given) {
  const std::string name =
      fs::absolute(given.folder + "/.").lexically_normal().parent_path().filename().string();
  const std::string path = name + ".json";
  const Json job = {{"checkpoint", {{"weights", given.weights}}},
                    {"data", {{"source", "image_folder"}, {"root", given.folder}}}};
  const std::string text = job.dump_lossy(2) + "\n";
  if (!path_exists(path)) {
    write_file_atomically(path, text);
    return path;
  }
  if (read_file(path) != text) {
    refuse("'" + path + "' exists and is another job", "finetune",
           "run it: fleetrun " + path + "; or rename it");
  }
  return path;
}

int run_fine_tuning(const CommandSyntax& syntax, const std::vector<std::string>& words) {
  if (std::any_of(words.begin(), words.end(),
                  [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    std::fputs(command_help(syntax).c_str(), stdout);
    return 0;
  }
  const FineTuning given = fine_tuning_of(words);
  if (given.folder.empty()) {
    refuse("no folder of photographs is given", "finetune",
           "give one with a folder for each class: fleetrun finetune photos/ --weights DIR");
  }
  if (given.weights.empty()) {
    refuse("--weights is missing", "finetune",
           "give a folder of timm, or a file of weights: fleetrun finetune photos/ --weights DIR");
  }
  // Before the job file is written: a corrected command would find it and be refused.
  if (!path_exists(expand_home(given.weights))) {
    refuse("--weights: '" + given.weights + "' does not exist", "finetune", "correct the path");
  }
  std::vector<std::string> command = {"fleetrun"};
  command.insert(command.end(), given.launcher.begin(), given.launcher.end());
  command.push_back(write_fine_tuning_job(given));
  command.insert(command.end(), given.job.begin(), given.job.end());
  restore_file_size_signal();
  ::execv("/proc/self/exe", pointers_to(command).data());
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(errno),
              "/proc/self/exe", "run the job file");
}

}  // namespace

FLEET_COMMAND(finetune) {
  def.syntax = {
      .program = "fleetrun finetune",
      .words = "FOLDER --weights WEIGHTS [OPTION of fleetrun]...",
      .about =
          "train a network on a folder of photographs, starting from weights\n"
          "It writes FOLDER.json, never over another job, and runs it with all options of "
          "fleetrun.",
      .least = 1,
      .most = 1,
      .missing_word = "give a folder of photographs: fleetrun finetune photos/ --weights DIR"};
  def.syntax.options.text({.key = "weights", .value = "WEIGHTS"}, "",
                          "a folder of timm, a file of weights, or a checkpoint");
  def.run_unparsed = [syntax = def.syntax](const std::vector<std::string>& words) {
    return run_fine_tuning(syntax, words);
  };
}

}  // namespace fleet
