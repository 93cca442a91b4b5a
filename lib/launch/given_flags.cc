#include "launch/given_flags.h"

#include "base/text.h"
#include "launch/options.h"

namespace fleet {
namespace {

std::string value_of(const Settings& settings, const ConfigKey& key) {
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path) ? "true" : "false";
    case ConfigType::kInteger:
      return std::to_string(settings.integer(key.path));
    case ConfigType::kNumber:
      return std::to_string(settings.number(key.path));
    case ConfigType::kTexts:
      return join(settings.texts(key.path), ",");
    default:
      return settings.text(key.path);
  }
}

}  // namespace

std::vector<std::string> given_flags(const Settings& settings,
                                     const std::set<std::string>& except) {
  std::vector<std::string> all;
  for (const ConfigKey& key : launch_schema().keys()) {
    if (!settings.given(key.path) || except.contains(key.path)) continue;
    all.push_back("--" + key.path + "=" + value_of(settings, key));
  }
  return all;
}

}  // namespace fleet
