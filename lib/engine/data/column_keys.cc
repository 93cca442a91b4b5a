#include <set>

#include "base/error.h"
#include "data/pipeline.h"
#include "data/source.h"

namespace fleet::data {
namespace {

bool is_image_key(const std::string& path) {
  static const std::set<std::string> kNames = {"cache",       "cache_memory", "sampling",
                                               "repeats",     "on_damaged",   "pixels",
                                               "class_names", "mean",         "std"};
  return kNames.contains(path) || path.starts_with("image.") || path.starts_with("augment.") ||
         path.starts_with("eval.");
}

}  // namespace

void check_column_keys(const Settings& data) {
  const std::string& name = data.text("source");
  if (!sources().get(name).gives_columns) return;
  for (const ConfigKey& key : data_schema(name).keys()) {
    if (!is_image_key(key.path) || !data.given(key.path)) continue;
    throw Error(ErrorCode::kUsage, "the source '" + name + "' has no images", "data." + key.path,
                "remove the key");
  }
}

}  // namespace fleet::data
