#include "launch/planning/rank_files.h"

#include <filesystem>
#include <random>

#include "base/env.h"
#include "base/file_name.h"

namespace fleet {
namespace {

// A random part for unique names.
std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::string word;
  for (int i = 0; i < 8; ++i) word += kLetters[device() % kLetters.size()];
  return word;
}

std::string absolute_folder(const std::string& folder) {
  return std::filesystem::absolute(folder + "/file").lexically_normal().parent_path().string();
}

}  // namespace

std::string log_folder(const LaunchConfig& config) {
  if (!config.as_torchrun) return config.logs.folder.value;
  std::string parent = config.logs.folder.value;
  if (is_temporary_log_folder(config)) {
    const std::string temporary = env_or("TMPDIR", "/tmp");
    parent = (temporary.empty() ? "/tmp" : temporary) + "/torchelastic_" + random_suffix();
  }
  return parent + "/" + file_name_component(config.job_id.value) + "_" + random_suffix();
}

bool is_temporary_log_folder(const LaunchConfig& config) {
  return config.as_torchrun && !config.logs.folder.given();
}

std::string temporary_parent(const std::string& log_folder) {
  return std::filesystem::path(log_folder).parent_path().string();
}

RankFileLayout::RankFileLayout(const LaunchConfig& config, std::string folder)
    : as_torchrun_(config.as_torchrun),
      split_(config.logs.split),
      folder_(std::move(folder)),
      absolute_folder_(absolute_folder(folder_)),
      shown_(config.logs.shown),
      output_filters_(config.logs.output_filters),
      error_filters_(config.logs.error_filters) {}

RankFiles RankFileLayout::of(int local_rank, int servers, int attempt) const {
  if (!as_torchrun_) {
    const bool server = local_rank < servers;
    const std::string name = (server ? "/serverlog." : "/workerlog.") +
                             std::to_string(server ? local_rank : local_rank - servers);
    const std::string log = folder_ + name;
    return {log, split_ ? log + ".err" : log, absolute_folder_ + name + ".error.json"};
  }
  const std::string name = "/attempt_" + std::to_string(attempt) + "/" + std::to_string(local_rank);
  const std::string own = folder_ + name;
  const int kept = shown_.redirects.of(local_rank) | shown_.tee.of(local_rank);
  return {(kept & wire::RankCommand::STANDARD_OUTPUT) != 0 ? own + "/stdout.log" : "",
          (kept & wire::RankCommand::STANDARD_ERROR) != 0 ? own + "/stderr.log" : "",
          absolute_folder_ + name + "/error.json"};
}

wire::CopiedLines RankFileLayout::copies(bool errors, int attempt) const {
  const std::string own = as_torchrun_ ? "/attempt_" + std::to_string(attempt) : std::string();
  wire::CopiedLines copies;
  copies.set_path(folder_ + own + (errors ? "/filtered_stderr.log" : "/filtered_stdout.log"));
  const std::vector<std::string>& filters = errors ? error_filters_ : output_filters_;
  copies.mutable_filters()->Add(filters.begin(), filters.end());
  return copies;
}

}  // namespace fleet
