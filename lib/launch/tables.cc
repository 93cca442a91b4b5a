#include "launch/tables.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "launch/options.h"
#include "launch/secret_names.h"

namespace fleet {
namespace {

constexpr size_t kKeyWidth = 40, kValueWidth = 45, kSpacing = 2;

std::string python_list(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) {
    std::string text;
    for (const char c : item)
      text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    quoted.push_back("'" + text + "'");
  }
  return "[" + join(quoted, ", ") + "]";
}

std::string python_value(const Settings& settings, const ConfigKey& key, const Option& option) {
  if (!settings.given(key.path) && option.optional) return key.path == "ips" ? "127.0.0.1" : "None";
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path) ? "True" : "False";
    case ConfigType::kInteger:
      return std::to_string(settings.integer(key.path));
    case ConfigType::kTexts:
      return join(
          key.path == "export" ? masked(settings.texts("export")) : settings.texts(key.path), ",");
    case ConfigType::kText:
      return settings.text(key.path).empty() ? "None" : settings.text(key.path);
    default: {
      char text[32];
      std::snprintf(text, sizeof text, "%g", settings.number(key.path));
      return text;
    }
  }
}

std::string row(const std::string& key, const std::string& value, size_t key_width) {
  std::string shown = value;
  if (shown.size() >= kValueWidth) shown = "... " + shown.substr(shown.size() - 41);
  const size_t pad = kValueWidth - shown.size();
  return "    |" + std::string(key_width - key.size(), ' ') + key + std::string(kSpacing, ' ') +
         std::string(pad / 2, ' ') + shown + std::string(pad - pad / 2, ' ') + "|\n";
}

}  // namespace

std::string configuration_block(const Settings& settings, const std::vector<std::string>& program) {
  std::map<std::string, std::string> lines;
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    // Paddle prints all of its options; what is rarer is shown where it is used.
    const bool rare = !option.common && (option.optional || option.is_flag());
    if (rare && !settings.given(option.key)) continue;
    lines[keys[i].path] = python_value(settings, keys[i], option);
  }
  lines["training_script"] = program.front();
  lines["training_script_args"] = python_list({program.begin() + 1, program.end()});
  std::string text = "-----------  Configuration Arguments -----------\n";
  for (const auto& [key, value] : lines) text += key + ": " + value + "\n";
  return text + std::string(48, '-') + "\n";
}

std::string environment_table(const Variables& variables) {
  size_t key_width = kKeyWidth;
  for (const auto& [key, value] : variables) key_width = std::max(key_width, key.size());
  const size_t width = key_width + kSpacing + kValueWidth;
  const std::string border = "    +" + std::string(width, '=') + "+";
  std::string text = border + "\n" + row("Distributed Envs", "Value", key_width);
  text += "    +" + std::string(width, '-') + "+\n";
  for (const auto& [key, value] : variables) text += row(key, value, key_width);
  return text + border;
}

std::string endpoints_log(const World& world) {
  std::string text;
  if (world.servers > 0) {
    text = "PADDLE_PSERVERS_IP_PORT_LIST: \n" + join(endpoints_of(world, true), "\n") + "\n";
  }
  return text + "PADDLE_TRAINER_ENDPOINTS: \n" + join(endpoints_of(world, false), "\n") + "\n";
}

}  // namespace fleet
