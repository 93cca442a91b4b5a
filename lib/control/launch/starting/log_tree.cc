#include "launch/starting/log_tree.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

// Creates the parent folder. Does not accept one that another user created in a world-writable
// folder.
void make_private_parent(const LaunchPlan& plan) {
  const std::string parent = temporary_parent(plan.log_dir);
  if (::mkdir(parent.c_str(), 0700) == 0 || std::filesystem::exists(plan.log_dir)) return;
  throw Error(ErrorCode::kUsage, std::string("cannot create the folder: ") + std::strerror(errno),
              parent, "choose a folder with --log_dir");
}

}  // namespace

void make_log_tree(const LaunchPlan& plan, const Assignment& assignment) {
  const LaunchConfig& config = plan.config();
  if (!config.as_torchrun) return;
  if (is_temporary_log_folder(config)) make_private_parent(plan);
  const RankFileLayout files(config, plan.log_dir);
  const NodePlacement& node = assignment.node();
  for (int rank = 0; rank < node.nproc(); ++rank) {
    const std::filesystem::path failure =
        files.of(rank, node.servers, assignment.world->restarts).failure;
    make_directories(failure.parent_path().string());
  }
}

void remove_temporary_logs(const LaunchPlan& plan) {
  const ShownRanks& shown = plan.config().logs.shown;
  const bool wanted = shown.tee.any() || shown.redirects.any();
  if (!is_temporary_log_folder(plan.config()) || wanted) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_parent(plan.log_dir), ignored);
}

}  // namespace fleet
