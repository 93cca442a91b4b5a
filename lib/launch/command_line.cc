#include "launch/command_line.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace fleet {

std::optional<Settings> read_command_line(const std::string& name, const std::string& summary,
                                          const Schema& schema,
                                          const std::vector<std::string>& arguments) {
  ConfigTree tree;
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "-h" || word == "--help") {
      std::printf("fleetrun %s: %s\n\n%s", name.c_str(), summary.c_str(), schema.help().c_str());
      return std::nullopt;
    }
    const auto refuse = [&](const std::string& what, const std::string& next) {
      throw Error(ErrorCode::kUsage, what, "fleetrun " + name, next);
    };
    if (!word.starts_with("--")) refuse("it takes no '" + word + "'", "see --help");
    const size_t equals = word.find('=');
    const std::string key = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto& keys = schema.keys();
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [&](const ConfigKey& one) { return one.path == key; });
    if (found == keys.end()) {
      std::vector<std::string> names;
      for (const ConfigKey& one : keys) names.push_back(one.path);
      const std::string nearest = nearest_name(key, names);
      refuse("unknown option '--" + key + "'",
             nearest.empty() ? "see --help" : "did you mean '--" + nearest + "'?");
    }
    if (equals != std::string::npos) {
      tree.set(key, word.substr(equals + 1), "--" + key);
    } else if (found->type == ConfigType::kBool) {
      tree.set(key, "true", "--" + key);
    } else if (at + 1 < arguments.size()) {
      tree.set(key, arguments[++at], "--" + key);
    } else {
      refuse("--" + key + " lacks its value", "see --help");
    }
  }
  return tree.validate(schema);
}

}  // namespace fleet
