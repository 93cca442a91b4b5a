#include "ps/table_deltas.h"

#include <filesystem>
#include <string_view>

#include "base/file_status.h"
#include "ps/saved_tables.h"
#include "ps/tables/snapshot.h"

namespace fleet::ps {
namespace {

// A checkpoint gets its name when all of it is written.
std::string completed(std::string folder) {
  constexpr std::string_view kPart = ".part";
  if (folder.ends_with(kPart)) folder.resize(folder.size() - kPart.size());
  return folder;
}

}  // namespace

std::optional<DeltaBase> TableDeltas::base_for(const std::string& checkpoint) const {
  namespace fs = std::filesystem;
  if (!base_ || since_base_ >= count_) return std::nullopt;
  const std::string folder = completed(checkpoint);
  const bool beside = fs::path(folder).parent_path() == fs::path(base_->checkpoint).parent_path();
  if (!beside || folder == base_->checkpoint) return std::nullopt;
  const std::string manifest = tables_of_checkpoint(base_->checkpoint) + "/" + kSnapshotManifest;
  return path_exists(manifest) ? base_ : std::nullopt;
}

void TableDeltas::written(const std::string& checkpoint, const std::vector<Json>& parts) {
  bool whole = true;
  Json versions = Json::object();
  for (const Json& part : parts) {
    whole &= part.at("since").get<int64_t>() == 0;
    versions[part.at("name").get<std::string>()] = part.at("version");
  }
  if (!whole) {
    ++since_base_;
    return;
  }
  base_ = {.checkpoint = completed(checkpoint), .versions = std::move(versions)};
  since_base_ = 0;
}

}  // namespace fleet::ps
