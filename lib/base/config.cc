#include "base/config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/python_literals.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;
using Scalar = ConfigValue::Scalar;
using List = std::vector<Scalar>;

// Bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Scalar& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

std::optional<Scalar> to_scalar(const Json& json) {
  if (json.is_boolean()) return Scalar(json.get<bool>());
  if (json.is_number_integer()) return Scalar(json.get<int64_t>());
  if (json.is_number()) return Scalar(json.get<double>());
  if (json.is_string()) return Scalar(json.get<std::string>());
  return std::nullopt;
}

std::optional<ConfigValue> to_value(const Json& json) {
  if (auto scalar = to_scalar(json)) return ConfigValue{*scalar};
  if (!json.is_array()) return std::nullopt;
  List list;
  for (const Json& element : json) {
    const auto scalar = to_scalar(element);
    if (!scalar) return std::nullopt;
    list.push_back(*scalar);
  }
  return ConfigValue{list};
}

bool is_list(ConfigType type) { return type >= ConfigType::kIntegers; }

ConfigType element_of(ConfigType type) {
  switch (type) {
    case ConfigType::kIntegers:
      return ConfigType::kInteger;
    case ConfigType::kNumbers:
      return ConfigType::kNumber;
    case ConfigType::kTexts:
      return ConfigType::kText;
    default:
      return type;
  }
}

const char* name_of(ConfigType type) {
  switch (type) {
    case ConfigType::kBool:
      return "true or false";
    case ConfigType::kInteger:
      return "an integer";
    case ConfigType::kNumber:
      return "a number";
    case ConfigType::kText:
      return "a text";
    case ConfigType::kIntegers:
      return "a list of integers";
    case ConfigType::kNumbers:
      return "a list of numbers";
    case ConfigType::kTexts:
      return "a list of texts";
  }
  return "";
}

// A choice in the spelling it is declared in, whatever its case on the command line.
void spell_choice(const ConfigKey& key, Scalar* scalar) {
  std::string* text = std::get_if<std::string>(scalar);
  if (!text) return;
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const std::string& choice : key.choices) {
    if (std::equal(text->begin(), text->end(), choice.begin(), choice.end(), same)) {
      *text = choice;
      return;
    }
  }
}

// The scalar as the wanted type, or nothing. Loose values came as text and are read as what is
// wanted.
std::optional<Scalar> coerce(const Scalar& given, ConfigType wanted, bool loose) {
  if (loose && wanted != ConfigType::kText && std::holds_alternative<std::string>(given)) {
    const Json json = Json::parse(json_from_python(std::get<std::string>(given)), nullptr, false);
    const auto scalar = to_scalar(json);
    return scalar ? coerce(*scalar, wanted, false) : std::nullopt;
  }
  switch (wanted) {
    case ConfigType::kBool:
      if (std::holds_alternative<bool>(given)) return given;
      if (given == Scalar(std::string("True"))) return Scalar(true);
      if (given == Scalar(std::string("False"))) return Scalar(false);
      break;
    case ConfigType::kInteger:
      if (std::holds_alternative<int64_t>(given)) return given;
      if (const double* number = std::get_if<double>(&given)) {
        if (*number == std::floor(*number) && std::abs(*number) < 9e15) {
          return Scalar(static_cast<int64_t>(*number));
        }
      }
      break;
    case ConfigType::kNumber:
      if (std::holds_alternative<double>(given)) return given;
      if (const int64_t* integer = std::get_if<int64_t>(&given)) {
        return Scalar(static_cast<double>(*integer));
      }
      break;
    default:
      if (std::holds_alternative<std::string>(given)) return given;
      break;
  }
  return std::nullopt;
}

std::string range_of(const ConfigKey& key) {
  const auto bound = [](double value) {
    const bool whole = value == std::floor(value) && std::abs(value) < 9e15;
    return whole ? std::to_string(static_cast<int64_t>(value)) : Json(value).dump();
  };
  if (!key.choices.empty()) {
    std::vector<std::string> shown = key.choices;
    for (std::string& choice : shown) {
      if (choice.empty()) choice = "\"\"";
    }
    return "one of " + join(shown, ", ");
  }
  const bool low = std::isfinite(key.min), high = std::isfinite(key.max);
  if (low && high) return "from " + bound(key.min) + " to " + bound(key.max);
  if (low) return "at least " + bound(key.min);
  if (high) return "at most " + bound(key.max);
  return {};
}

bool in_range(const Scalar& scalar, const ConfigKey& key) {
  if (const std::string* text = std::get_if<std::string>(&scalar)) {
    if (key.choices.empty()) return true;
    for (const std::string& choice : key.choices) {
      if (choice == *text) return true;
    }
    return false;
  }
  double number = 0;
  if (const int64_t* integer = std::get_if<int64_t>(&scalar))
    number = static_cast<double>(*integer);
  if (const double* real = std::get_if<double>(&scalar)) number = *real;
  return std::holds_alternative<bool>(scalar) || (number >= key.min && number <= key.max);
}

[[noreturn]] void bad_value(const ConfigKey& key, const ConfigValue& value,
                            const std::string& origin) {
  std::string wanted = name_of(key.type);
  const std::string range = range_of(key);
  if (!range.empty()) wanted += ", " + range;
  throw Error(ErrorCode::kUsage, "'" + key.path + "' cannot be " + value.text(), origin,
              "it must be " + wanted);
}

ConfigValue check(const ConfigKey& key, const ConfigValue& given, bool loose,
                  const std::string& origin) {
  List list;
  if (const Scalar* scalar = std::get_if<Scalar>(&given.value)) {
    const std::string* text = std::get_if<std::string>(scalar);
    if (is_list(key.type) && loose && text) {  // "1,2,3"
      for (const std::string& part : split(*text, ',')) list.push_back(part);
    } else {
      list.push_back(*scalar);
      if (is_list(key.type) && !loose) bad_value(key, given, origin);
    }
  } else {
    if (!is_list(key.type)) bad_value(key, given, origin);
    list = std::get<List>(given.value);
  }
  for (Scalar& element : list) {
    auto coerced = coerce(element, element_of(key.type), loose);
    if (coerced && loose) spell_choice(key, &*coerced);
    if (!coerced || !in_range(*coerced, key)) bad_value(key, given, origin);
    element = *coerced;
  }
  return is_list(key.type) ? ConfigValue{list} : ConfigValue{list.front()};
}

template <typename T>
ConfigValue list_value(const std::vector<T>& values) {
  return ConfigValue{List(values.begin(), values.end())};
}

}  // namespace

std::string ConfigValue::text() const {
  if (const Scalar* scalar = std::get_if<Scalar>(&value)) return dump(to_json(*scalar));
  Json array = Json::array();
  for (const Scalar& element : std::get<List>(value)) array.push_back(to_json(element));
  return dump(array);
}

Schema& Schema::boolean(std::string path, bool initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kBool,
                   .initial = ConfigValue{Scalar(initial)},
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::integer(std::string path, int64_t initial, double min, double max,
                        std::string help) {
  keys_.push_back({std::move(path),
                   ConfigType::kInteger,
                   ConfigValue{Scalar(initial)},
                   min,
                   max,
                   {},
                   std::move(help)});
  return *this;
}
Schema& Schema::number(std::string path, double initial, double min, double max, std::string help) {
  keys_.push_back({std::move(path),
                   ConfigType::kNumber,
                   ConfigValue{Scalar(initial)},
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
                   .initial = ConfigValue{Scalar(std::move(initial))},
                   .choices = std::move(choices),
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::integers(std::string path, std::vector<int64_t> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kIntegers,
                   .initial = list_value(initial),
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::numbers(std::string path, std::vector<double> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kNumbers,
                   .initial = list_value(initial),
                   .choices = {},
                   .help = std::move(help)});
  return *this;
}
Schema& Schema::texts(std::string path, std::vector<std::string> initial, std::string help) {
  keys_.push_back({.path = std::move(path),
                   .type = ConfigType::kTexts,
                   .initial = list_value(initial),
                   .choices = {},
                   .help = std::move(help)});
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
    text += key.path + ": " + name_of(key.type);
    const std::string range = range_of(key);
    if (!range.empty()) text += " " + range;
    text += key.initial ? " (default " + key.initial->text() + ")" : " (required)";
    text += ". " + key.help + "\n";
  }
  return text;
}

const Settings::Entry& Settings::entry(const std::string& path) const {
  const auto found = entries_.find(path);
  FLEET_CHECK(found != entries_.end(), "no schema declares the key '" + path + "'");
  return found->second;
}

template <typename T>
const T& Settings::scalar(const std::string& path) const {
  const Scalar* scalar = std::get_if<Scalar>(&entry(path).value.value);
  FLEET_CHECK(scalar && std::holds_alternative<T>(*scalar), "'" + path + "' has another type");
  return std::get<T>(*scalar);
}

namespace {
template <typename T>
std::vector<T> list_of(const ConfigValue& value) {
  std::vector<T> all;
  for (const Scalar& element : std::get<List>(value.value)) all.push_back(std::get<T>(element));
  return all;
}
}  // namespace

bool Settings::boolean(const std::string& path) const { return scalar<bool>(path); }
int64_t Settings::integer(const std::string& path) const { return scalar<int64_t>(path); }
double Settings::number(const std::string& path) const { return scalar<double>(path); }
const std::string& Settings::text(const std::string& path) const {
  return scalar<std::string>(path);
}
std::vector<int64_t> Settings::integers(const std::string& path) const {
  return list_of<int64_t>(entry(path).value);
}
std::vector<double> Settings::numbers(const std::string& path) const {
  return list_of<double>(entry(path).value);
}
std::vector<std::string> Settings::texts(const std::string& path) const {
  return list_of<std::string>(entry(path).value);
}
bool Settings::given(const std::string& path) const { return entry(path).origin != "default"; }
const std::string& Settings::origin(const std::string& path) const { return entry(path).origin; }

Settings Settings::section(const std::string& prefix) const {
  Settings inner;
  const std::string start = prefix + ".";
  for (auto it = entries_.lower_bound(start); it != entries_.end() && it->first.starts_with(start);
       ++it) {
    inner.entries_.emplace(it->first.substr(start.size()), it->second);
  }
  return inner;
}

std::string Settings::print() const {
  std::string text;
  for (const auto& [path, entry] : entries_) {
    text += path + " = " + entry.value.text() + "  (" + entry.origin + ")\n";
  }
  return text;
}

namespace {

// An empty object leaves an entry under its path with this behind it: validate() tells a section
// from a key that lacks its value, and from a name that does not exist.
constexpr char kEmptyObject = '.';

[[noreturn]] void given_twice(const std::string& path, const std::string& origin) {
  throw Error(ErrorCode::kUsage, "the key '" + path + "' is given twice", origin,
              "leave one of them out");
}

// What no job file has, and a damaged or made-up one may.
constexpr int64_t kLargestFile = 4 << 20;  // bytes
constexpr int kDeepest = 32, kMostKeys = 2000;
constexpr size_t kLongestKey = 200, kErrorsShown = 20;

// Refuses too much of anything, and names that an object has twice: the parser would keep one of
// the values in silence.
class JobFileCheck {
 public:
  explicit JobFileCheck(const std::string& origin) : origin_(origin) {}
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDeepest) too_much("is nested more than " + std::to_string(kDeepest) + " deep");
    if (event == Json::parse_event_t::key && ++keys_ > kMostKeys) {
      too_much("has more than " + std::to_string(kMostKeys) + " keys");
    }
    if (event == Json::parse_event_t::key &&
        parsed.get_ref<const std::string&>().size() > kLongestKey) {
      too_much("has a key of more than " + std::to_string(kLongestKey) + " bytes");
    }
    if (event == Json::parse_event_t::object_start) {
      names_.resize(depth + 1);
      names_.back().clear();
    } else if (event == Json::parse_event_t::key) {
      path_.resize(depth);
      path_.back() = parsed.get<std::string>();
      if (!names_[depth - 1].insert(path_.back()).second) given_twice(join(path_, "."), origin_);
    }
    return true;
  }

 private:
  [[noreturn]] void too_much(const std::string& what) const {
    throw Error(ErrorCode::kUsage, "it " + what, origin_, "give a job file");
  }

  const std::string& origin_;
  int keys_ = 0;
  std::vector<std::set<std::string>> names_;  // by depth, of the objects that are open
  std::vector<std::string> path_;
};

}  // namespace

ConfigTree ConfigTree::from_json(std::string_view json, const std::string& origin) {
  Json root;
  try {
    root = Json::parse(json_from_python(json), JobFileCheck(origin), true,
                       /*ignore_comments=*/true);
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    const size_t at = what.find("at line");
    throw Error(ErrorCode::kUsage,
                "not valid JSON " + (at == std::string::npos ? what : what.substr(at)), origin,
                "correct it");
  }
  if (!root.is_object()) {
    throw Error(ErrorCode::kUsage, "not a JSON object", origin, "write { \"key\": value, ... }");
  }
  ConfigTree tree;
  const auto walk = [&](const auto& self, const Json& node, const std::string& prefix) -> void {
    for (const auto& [name, child] : node.items()) {
      const std::string path = prefix.empty() ? name : prefix + "." + name;
      if (child.is_object() && !child.empty()) {
        self(self, child, path);
        continue;
      }
      if (child.is_object()) {
        tree.entries_[path + kEmptyObject] = {ConfigValue{Scalar("{}")}, origin};
        continue;
      }
      const auto value = to_value(child);
      if (!value) {
        throw Error(ErrorCode::kUsage, "'" + path + "' cannot be " + dump(child), origin,
                    child.is_null() ? "leave it out for its default"
                                    : "write a scalar, or a list of scalars");
      }
      if (!tree.entries_.emplace(path, Entry{*value, origin}).second) given_twice(path, origin);
    }
  };
  walk(walk, root, "");
  return tree;
}

ConfigTree ConfigTree::from_file(const std::string& path) {
  std::string content;
  try {
    content = read_regular_file(path, kLargestFile);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.failure(), path, "give the path of a job file");
  }
  return from_json(content, path);
}

void ConfigTree::set(const std::string& path, std::string_view text, const std::string& origin) {
  if (text.starts_with('[')) {
    const auto value = to_value(Json::parse(json_from_python(text), nullptr, false));
    if (value) {
      entries_[path] = {*value, origin};
      return;
    }
  }
  entries_[path] = {ConfigValue{Scalar(std::string(text))}, origin, /*loose=*/true};
}

std::optional<std::string> ConfigTree::peek(const std::string& path) const {
  const auto found = entries_.find(path);
  if (found == entries_.end()) return std::nullopt;
  const Scalar* scalar = std::get_if<Scalar>(&found->second.value.value);
  if (scalar && std::holds_alternative<std::string>(*scalar)) return std::get<std::string>(*scalar);
  return found->second.value.text();
}

std::string ConfigTree::origin(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? std::string() : found->second.origin;
}

std::vector<std::string> ConfigTree::paths(const std::string& prefix) const {
  std::vector<std::string> found;
  for (auto it = entries_.lower_bound(prefix);
       it != entries_.end() && it->first.starts_with(prefix); ++it) {
    found.push_back(it->first);
  }
  return found;
}

void ConfigTree::overlay(const ConfigTree& other) {
  for (const auto& [path, entry] : other.entries_) entries_[path] = entry;
}

void ConfigTree::rename(const std::string& from, const std::string& to) {
  auto node = entries_.extract(from);
  FLEET_CHECK(!node.empty(), "there is no '" + from + "'");
  entries_.erase(to);
  node.key() = to;
  entries_.insert(std::move(node));
}

// The known keys below a section.
static std::vector<std::string> keys_below(const std::string& section,
                                           const std::vector<std::string>& known) {
  std::vector<std::string> keys;
  for (const std::string& key : known) {
    if (key.starts_with(section + ".")) keys.push_back(key);
  }
  return keys;
}

// What the user may have meant by an unknown path: a key of its section, else any, else the keys
// beside it.
static std::string meant(const std::string& path, const std::vector<std::string>& known) {
  const std::string section = path.substr(0, path.find('.'));
  const std::string likely = path_suggestion(path, keys_below(section, known));
  if (!likely.empty()) return likely;
  const std::string nearest = nearest_name(path, known);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  for (std::string prefix = path; prefix.find('.') != std::string::npos;) {
    prefix.resize(prefix.rfind('.'));
    const std::vector<std::string> siblings = keys_below(prefix, known);
    if (!siblings.empty()) return suggestion(path, siblings);
  }
  return path_suggestion(path, known);
}

static std::vector<std::string> sections_of(const std::vector<std::string>& known) {
  std::vector<std::string> sections;
  for (const std::string& key : known) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) continue;
    const std::string name = key.substr(0, dot);
    if (std::find(sections.begin(), sections.end(), name) == sections.end()) {
      sections.push_back(name);
    }
  }
  return sections;
}

// Why an entry is none of the known keys. object: it is an empty object; nothing where that is a
// section.
static std::optional<Error> unknown(const std::string& path, bool object, const std::string& origin,
                                    const std::vector<std::string>& known) {
  const std::vector<std::string> inside = keys_below(path, known);
  if (!inside.empty()) {
    if (object) return std::nullopt;
    return Error(ErrorCode::kUsage, "'" + path + "' is a section, and no value", origin,
                 "write an object with its keys, such as '" + inside.front() + "'");
  }
  if (object && std::find(known.begin(), known.end(), path) != known.end()) {
    return Error(ErrorCode::kUsage, "'" + path + "' cannot be {}", origin, "it takes a value");
  }
  const std::vector<std::string> sections = sections_of(known);
  const std::string section = path.substr(0, path.find('.'));
  const bool in_section = section != path || object;
  if (in_section && std::find(sections.begin(), sections.end(), section) == sections.end()) {
    return Error(ErrorCode::kUsage, "unknown section '" + section + "'", origin,
                 suggestion(section, sections));
  }
  std::string hint = meant(path, known);
  if (hint.empty()) hint = "known at this level: " + join(sections, ", ");
  return Error(ErrorCode::kUsage, "unknown key '" + path + "'", origin, hint);
}

// All that is wrong, a line each.
static void throw_all(const std::vector<Error>& errors) {
  if (errors.empty()) return;
  if (errors.size() == 1) throw errors[0];
  const bool more = errors.size() > kErrorsShown;
  std::string text =
      (more ? "more than " + std::to_string(kErrorsShown) : std::to_string(errors.size())) +
      " settings cannot be used:";
  for (size_t i = 0; i < std::min(errors.size(), kErrorsShown); ++i) {
    text += std::string("\n  ") + errors[i].what();
  }
  throw Error(ErrorCode::kUsage, text);
}

Settings ConfigTree::validate(const Schema& schema) const {
  std::vector<std::string> known;
  std::vector<Error> errors;
  for (const ConfigKey& key : schema.keys()) known.push_back(key.path);
  std::set<std::string> said;
  for (const auto& [path, entry] : entries_) {
    if (std::find(known.begin(), known.end(), path) != known.end()) continue;
    const bool object = path.ends_with(kEmptyObject);
    const auto error =
        unknown(object ? path.substr(0, path.size() - 1) : path, object, entry.origin, known);
    if (error && said.insert(error->what()).second) errors.push_back(*error);
    if (errors.size() > kErrorsShown) break;
  }
  Settings settings;
  for (const ConfigKey& key : schema.keys()) {
    const auto found = entries_.find(key.path);
    try {
      if (found != entries_.end()) {
        const Entry& entry = found->second;
        settings.entries_[key.path] = {check(key, entry.value, entry.loose, entry.origin),
                                       entry.origin};
      } else if (key.initial) {
        settings.entries_[key.path] = {*key.initial, "default"};
      } else {
        throw Error(ErrorCode::kUsage, "the required key '" + key.path + "' is missing", {},
                    key.help);
      }
    } catch (const Error& error) {
      errors.push_back(error);
    }
  }
  throw_all(errors);
  return settings;
}

}  // namespace fleet
