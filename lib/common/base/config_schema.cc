#include <iterator>
#include <utility>

#include "base/config.h"
#include "base/config_key.h"

namespace fleet {

template <typename T>
static ConfigValue list_value(std::vector<T> values) {
  return ConfigValue{std::vector<ConfigValue::Scalar>(std::make_move_iterator(values.begin()),
                                                      std::make_move_iterator(values.end()))};
}

Schema& Schema::boolean(std::string path, bool initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kBool,
                   .initial = ConfigValue{ConfigValue::Scalar(initial)},
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::integer(std::string path, int64_t initial, double min, double max,
                        std::string help) {
  keys_.push_back({std::move(path),
                   ConfigType::kInteger,
                   ConfigValue{ConfigValue::Scalar(initial)},
                   min,
                   max,
                   {},
                   std::move(help)});
  return *this;
}
Schema& Schema::number(std::string path, double initial, double min, double max, std::string help) {
  keys_.push_back({std::move(path),
                   ConfigType::kNumber,
                   ConfigValue{ConfigValue::Scalar(initial)},
                   min,
                   max,
                   {},
                   std::move(help)});
  return *this;
}
Schema& Schema::text(std::string path, std::string initial, std::string help) {
  return choice(std::move(path), std::move(initial), {}, std::move(help));
}
Schema& Schema::choice(std::string path, std::string initial, std::vector<std::string> choices,
                       std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kText,
                   .initial = ConfigValue{ConfigValue::Scalar(std::move(initial))},
                   .choices = std::move(choices),
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::integers(std::string path, std::vector<int64_t> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kIntegers,
                   .initial = list_value(std::move(initial)),
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::numbers(std::string path, std::vector<double> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kNumbers,
                   .initial = list_value(std::move(initial)),
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::texts(std::string path, std::vector<std::string> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kTexts,
                   .initial = list_value(std::move(initial)),
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}

Schema& Schema::as_path() {
  keys_.back().is_path = true;
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
