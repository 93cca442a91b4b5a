// fleetrun finetune: the words of its line, and the job file that it writes.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct FineTuning {
  std::string folder;                 // the photographs' folder, without a "/" at the end
  std::string weights;                // likewise
  std::vector<std::string> launcher;  // options of fleetrun, with their values
  std::vector<std::string> job;       // words that belong behind the job file

  // "photos.json", named after the folder.
  std::string job_file() const;
};

// Throws kUsage if the folder or the weights are missing, do not exist, or cannot be what they are
// for. `words`: behind "finetune".
FineTuning read_fine_tuning(const std::vector<std::string>& words);

// Writes the job file into the working directory. False: the same job exists. Throws kUsage if
// another one does.
bool write_fine_tuning_job(const FineTuning& given);

}  // namespace fleet
