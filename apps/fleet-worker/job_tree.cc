#include "job_tree.h"

#include <filesystem>

#include "base/file_status.h"
#include "base/log.h"
#include "hf/export.h"
#include "train/device_settings.h"
#include "train/job.h"
#include "train/pretrained_job.h"

namespace fleet {

// What follows from the weights, after all that the user has set.
static void derive_keys(const JobLine& line, ConfigTree* tree) {
  const DerivedKeys derived = derive_from_weights(tree);
  if (!line.verbose) return;
  for (const std::string& text : derived.lines) spdlog::info("{}", text);
  for (const std::string& text : derived.warnings) spdlog::warn("{}", text);
}

ConfigTree read_job_tree(const JobLine& line) {
  ConfigTree tree =
      is_folder(line.file) ? job_of_checkpoint(line.file) : ConfigTree::from_file(line.file);
  apply_flags(tree);
  std::vector<std::string> lines;
  if (line.servers) lines = apply_server_flags(tree);
  const std::vector<std::string> left_out = apply_overrides(tree, line.overrides);
  lines.insert(lines.end(), left_out.begin(), left_out.end());
  lines.push_back(divide_global_batch(tree, line.ranks));
  for (const std::string& text : lines) {
    if (line.verbose && !text.empty()) spdlog::info("{}", text);
  }
  derive_keys(line, &tree);
  if (!tree.peek("train.name")) {
    tree.set("train.name", std::filesystem::path(line.file).stem().string(), "its name");
  }
  if (!line.device.empty()) tree.set("train.device", line.device, "--device");
  return tree;
}

}  // namespace fleet
