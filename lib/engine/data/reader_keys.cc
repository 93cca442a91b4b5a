// The short forms data.threads=auto, data.prefetch=auto and data.reader=sync.
#include "base/error.h"
#include "data/pipeline.h"

namespace fleet::data {

void expand_reader_keys(ConfigTree* tree) {
  for (const std::string key : {"threads", "prefetch"}) {
    const std::string path = "data." + key;
    if (tree->peek(path) != "auto") continue;
    tree->rename(path, "data.auto." + key);
    tree->set("data.auto." + key, "true", tree->origin("data.auto." + key));
  }
  const auto reader = tree->peek("data.reader");
  if (!reader) return;
  const std::string origin = tree->origin("data.reader");
  if (reader != "sync" && reader != "async") {
    throw Error(ErrorCode::kUsage, "'" + *reader + "' is not a kind of reader",
                origin + ": data.reader", "known: sync, async");
  }
  tree->rename("data.reader", "data.async");
  tree->set("data.async", reader == "async" ? "true" : "false", origin);
}

}  // namespace fleet::data
