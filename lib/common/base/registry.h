// Self-registration: each registered thing is one file with one macro, without an edit elsewhere:
//   FLEET_OPTIMIZER(sgd) { def.help = ...; def.append = ...; }
// The macro of each kind is one line, FLEET_REGISTER, next to the registry of its kind.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/text.h"

namespace fleet {

// Maps names to things. Thread-safe: a plugin that is loaded at run time adds to it while other
// threads read. Things stay where they are; none is ever removed.
//   kind  kind of things, for messages: "model", "optimizer"
template <typename Thing>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  void add(const std::string& name, Thing thing) {
    if (!insert(name, std::move(thing))) {
      throw Error(ErrorCode::kInternal, kind_ + " '" + name + "' is registered twice");
    }
  }
  // Adds what `define` makes of `start`. Returns true: the value that FLEET_REGISTER initializes.
  // Nothing can report an error before main(), so that find() and get() refuse a name that is
  // registered twice.
  bool define(const std::string& name, void (*define)(Thing&), Thing start = {}) {
    define(start);
    if (insert(name, std::move(start))) return true;
    const MutexLock lock(mutex_);
    taken_twice_.insert(name);
    return true;
  }
  // Null if no thing has this name. kUsage if it was defined twice.
  const Thing* find(const std::string& name) const {
    const MutexLock lock(mutex_);
    if (taken_twice_.contains(name)) {
      throw Error(ErrorCode::kUsage, kind_ + " '" + name + "' is registered twice", {},
                  "give your own another name");
    }
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
    const MutexLock lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [name, thing] : things_) all.push_back(name);
    return all;
  }

 private:
  bool insert(const std::string& name, Thing thing) {
    const MutexLock lock(mutex_);
    return things_.emplace(name, std::move(thing)).second;
  }

  const std::string kind_;
  mutable Mutex mutex_;
  std::set<std::string> taken_twice_ FLEET_GUARDED_BY(mutex_);
  std::map<std::string, Thing> things_ FLEET_GUARDED_BY(mutex_);
};

// The shape of every registering macro. Before main(), or while a plugin is loaded, it calls
// function(...), with the function whose body follows as the last argument.
//   tag        distinguishes the names that one file registers: op_##name
//   parameter  of the body: ::fleet::OpDef& def
#define FLEET_REGISTER(tag, parameter, function, ...)                                        \
  static void define_##tag(parameter);                                                       \
  [[maybe_unused]] static const bool registered_##tag = function(__VA_ARGS__, define_##tag); \
  static void define_##tag(parameter)

}  // namespace fleet
