// Self-registration: each registered thing is one file with one Registrar at namespace scope,
// without an edit elsewhere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace fleet {

// Maps names to things. Filled before main() and only read afterwards, so it needs no lock.
//   kind  kind of things, for messages: "model", "optimizer"
template <typename Thing>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  void add(const std::string& name, Thing thing) {
    if (!things_.emplace(name, std::move(thing)).second) {
      throw Error(ErrorCode::kInternal, kind_ + " '" + name + "' is registered twice");
    }
  }
  const Thing* find(const std::string& name) const {
    const auto found = things_.find(name);
    return found == things_.end() ? nullptr : &found->second;
  }
  // Throws kUsage naming the nearest known name.
  const Thing& get(const std::string& name) const {
    if (const Thing* thing = find(name)) return *thing;
    throw Error(ErrorCode::kUsage, "unknown " + kind_ + " '" + name + "'", {},
                suggestion(name, names()));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, thing] : things_) all.push_back(name);
    return all;
  }

 private:
  std::string kind_;
  std::map<std::string, Thing> things_;
};

}  // namespace fleet
