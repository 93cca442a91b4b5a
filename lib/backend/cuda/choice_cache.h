// What was measured to be fastest, kept in a file from run to run: lines of text under keys.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace fleet::cuda {

// Thread-safe. Several processes may share a file: each adds what it found to what the file holds
// then, writes beside it and renames, so that a reader never sees a part. Of two that write at the
// same moment one may lose its lines; they are measured again another time.
class ChoiceCache {
 public:
  // An empty path keeps choices for this process only. A damaged file counts as empty, with a
  // warning.
  explicit ChoiceCache(std::string path);
  std::optional<std::string> find(const std::string& key) const;
  // Keys and values without tabs and line breaks. A file that cannot be written is a warning, once.
  void add(const std::string& key, const std::string& value);

 private:
  std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> choices_;
  bool warned_ = false;
};

// Where choices for such a GPU and library are kept: <name>-<gpu>-<version>.txt in fleetrun's
// folder under $XDG_CACHE_HOME or $HOME/.cache; empty where neither is set.
std::string choice_file(const std::string& name, const std::string& gpu, size_t version);

}  // namespace fleet::cuda
