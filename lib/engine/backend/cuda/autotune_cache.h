// The fastest measured choices, stored in a file between runs: lines of text by key.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/mutex.h"

namespace fleet::cuda {

// Thread-safe. Several processes may share a file: each adds its choices to the current content,
// writes a temporary file and renames it, so that readers never see a partial file. Ranks agree on
// a choice if each measures under lock() and looks with reload() first: one measures, the others
// wait and use what it found.
class AutotuneCache {
 public:
  // An empty path keeps choices for this process only. owner: what the choices hold for, such as a
  // GPU and a library's version, in one line. A file that is damaged or of another owner counts as
  // empty and causes a warning.
  explicit AutotuneCache(std::string path, std::string owner = "");
  std::optional<std::string> find(const std::string& key) const;
  // Waits until no other process holds the file's lock, and holds it until the descriptor is
  // closed; the kernel releases the lock of a process that dies. Empty if there is no file, or it
  // cannot be locked: then every process measures for itself.
  UniqueFd lock() const;
  // Takes over the choices that other processes have stored.
  void reload();
  // Keys and values must not contain tabs or line breaks. An unwritable file causes one warning.
  void add(const std::string& key, const std::string& value);

 private:
  const std::string path_, owner_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> choices_ FLEET_GUARDED_BY(mutex_);
  bool warned_ FLEET_GUARDED_BY(mutex_) = false;
};

// The file for choices of this GPU and library: <name>-<gpu>-<version>.txt in fleetrun's folder
// under $XDG_CACHE_HOME or $HOME/.cache; empty if neither is set.
std::string autotune_cache_file(const std::string& name, const std::string& gpu, size_t version);

}  // namespace fleet::cuda
