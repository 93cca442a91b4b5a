#include <iterator>
#include <utility>

#include "base/config.h"
#include "base/config_key.h"

namespace fleet {

static ConfigValue one(ConfigValue::Scalar value) { return {std::move(value)}; }

template <typename T>
static ConfigValue list(std::vector<T> values) {
  return {std::vector<ConfigValue::Scalar>(std::make_move_iterator(values.begin()),
                                           std::make_move_iterator(values.end()))};
}

ConfigKey& Schema::add(std::string path, ConfigType type, ConfigValue initial, std::string help) {
  return keys_.emplace_back(ConfigKey{.path = std::move(path),
                                      .type = type,
                                      .initial = std::move(initial),
                                      .choices = {},
                                      .help = std::move(help)});
}

Schema& Schema::boolean(std::string path, bool initial, std::string help) {
  add(std::move(path), ConfigType::kBool, one(initial), std::move(help));
  return *this;
}
Schema& Schema::integer(std::string path, int64_t initial, double min, double max,
                        std::string help) {
  ConfigKey& key = add(std::move(path), ConfigType::kInteger, one(initial), std::move(help));
  key.min = min;
  key.max = max;
  return *this;
}
Schema& Schema::number(std::string path, double initial, double min, double max, std::string help) {
  ConfigKey& key = add(std::move(path), ConfigType::kNumber, one(initial), std::move(help));
  key.min = min;
  key.max = max;
  return *this;
}
Schema& Schema::text(std::string path, std::string initial, std::string help) {
  return choice(std::move(path), std::move(initial), {}, std::move(help));
}
Schema& Schema::choice(std::string path, std::string initial, std::vector<std::string> choices,
                       std::string help) {
  add(std::move(path), ConfigType::kText, one(std::move(initial)), std::move(help)).choices =
      std::move(choices);
  return *this;
}
Schema& Schema::integers(std::string path, std::vector<int64_t> initial, std::string help) {
  add(std::move(path), ConfigType::kIntegers, list(std::move(initial)), std::move(help));
  return *this;
}
Schema& Schema::numbers(std::string path, std::vector<double> initial, std::string help) {
  add(std::move(path), ConfigType::kNumbers, list(std::move(initial)), std::move(help));
  return *this;
}
Schema& Schema::texts(std::string path, std::vector<std::string> initial, std::string help) {
  add(std::move(path), ConfigType::kTexts, list(std::move(initial)), std::move(help));
  return *this;
}

Schema& Schema::as_path() {
  keys_.back().is_path = true;
  return *this;
}

Schema& Schema::or_objects() {
  keys_.back().objects = true;
  return *this;
}

Schema& Schema::required() {
  keys_.back().initial.reset();
  return *this;
}

Schema& Schema::section(const std::string& prefix, const Schema& inner) {
  for (ConfigKey key : inner.keys_) {
    if (!prefix.empty()) key.path = prefix + "." + key.path;
    keys_.push_back(std::move(key));
  }
  return *this;
}

std::string Schema::help() const {
  std::string text;
  for (const ConfigKey& key : keys_) {
    text += key.path + ": " + config::name_of(key.type);
    const std::string range = config::range_of(key);
    if (!range.empty()) text += " " + range;
    text += key.initial ? " (default " + key.initial->text() + ")" : " (required)";
    text += ". " + key.help + "\n";
  }
  return text;
}

}  // namespace fleet
