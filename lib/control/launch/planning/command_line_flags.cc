#include "launch/planning/command_line_flags.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "launch/planning/option_rules.h"
#include "launch/planning/options.h"

namespace fleet {
namespace {

// The shortest text that reads back as exactly this number.
std::string exact_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string value_of(const Settings& settings, const ConfigKey& key) {
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path) ? "true" : "false";
    case ConfigType::kInteger:
      return std::to_string(settings.integer(key.path));
    case ConfigType::kNumber:
      return exact_text(settings.number(key.path));
    case ConfigType::kTexts:
      return list_option(settings.texts(key.path));
    default:
      return settings.text(key.path);
  }
}

}  // namespace

std::string list_option(const std::vector<std::string>& entries) {
  const std::string plain = join(entries, ",");
  const bool has_comma = static_cast<size_t>(std::count(plain.begin(), plain.end(), ',')) + 1 !=
                         std::max<size_t>(entries.size(), 1);
  if (!has_comma) return plain;
  return ConfigValue{std::vector<ConfigValue::Scalar>(entries.begin(), entries.end())}.text();
}

std::vector<std::string> given_flags(const LaunchRequest& request,
                                     const std::set<std::string>& except) {
  const Settings& settings = request.settings;
  std::vector<std::string> all;
  std::set<std::string> left_out = except;
  for (const InapplicableOption& inapplicable : inapplicable_options(request))
    left_out.insert(inapplicable.key);
  for (const ConfigKey& key : launch_schema().keys()) {
    if (!settings.given(key.path) || left_out.contains(key.path)) continue;
    all.push_back("--" + key.path + "=" + value_of(settings, key));
  }
  return all;
}

}  // namespace fleet
