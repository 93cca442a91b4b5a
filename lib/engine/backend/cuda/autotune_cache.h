// The fastest measured choices, stored in a file between runs: lines of text by key.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"

namespace fleet::cuda {

// Thread-safe. Several processes may share a file: each adds its choices to the current content,
// writes a temporary file and renames it, so that readers never see a partial file. If two
// processes write at the same moment, one may lose its lines; they will be measured again.
class AutotuneCache {
 public:
  // An empty path keeps choices for this process only. A damaged file counts as empty and causes a
  // warning.
  explicit AutotuneCache(std::string path);
  std::optional<std::string> find(const std::string& key) const;
  // Keys and values must not contain tabs or line breaks. An unwritable file causes one warning.
  void add(const std::string& key, const std::string& value);

 private:
  const std::string path_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> choices_ FLEET_GUARDED_BY(mutex_);
  bool warned_ FLEET_GUARDED_BY(mutex_) = false;
};

// The file for choices of this GPU and library: <name>-<gpu>-<version>.txt in fleetrun's folder
// under $XDG_CACHE_HOME or $HOME/.cache; empty if neither is set.
std::string autotune_cache_file(const std::string& name, const std::string& gpu, size_t version);

}  // namespace fleet::cuda
