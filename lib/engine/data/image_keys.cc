// Keys that only images need.
#include <set>

#include "base/error.h"
#include "data/pipeline.h"

namespace fleet::data {
namespace {

bool is_image_key(const std::string& path) {
  static const std::set<std::string> kNames = {
      "cache", "cache_memory", "sampling",    "repeats", "on_damaged", "pixels",
      "mean",  "std",          "class_names", "exif",    "pass_order", "interpolation"};
  return kNames.contains(path) || path.starts_with("image.") || path.starts_with("augment.") ||
         path.starts_with("eval.");
}

}  // namespace

void check_image_keys(const Settings& data, const std::vector<Column>& columns) {
  if (find_column(columns, "image")) return;
  const std::string& source = data.text("source");
  const SourceType& type = sources().get(source);
  const Schema schema = data_schema(source);
  for (const ConfigKey& key : schema.keys()) {
    if (!is_image_key(key.path) || !data.given(key.path)) continue;
    if (key.path == "class_names" && type.has_classes) continue;
    if (key.path == "on_damaged" && type.drops_rows) continue;
    throw Error(ErrorCode::kUsage, "the source '" + source + "' has no images", "data." + key.path,
                "remove the key");
  }
}

}  // namespace fleet::data
