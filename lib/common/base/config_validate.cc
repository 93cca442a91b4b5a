#include <algorithm>
#include <set>

#include "base/config.h"
#include "base/config_key.h"
#include "base/config_value.h"
#include "base/error.h"
#include "base/home_folder.h"
#include "base/nearest_path.h"
#include "base/text.h"

namespace fleet {

constexpr size_t kErrorsShown = 20;

// The known keys below a section.
static std::vector<std::string> keys_below(const std::string& section,
                                           const std::vector<std::string>& known) {
  std::vector<std::string> keys;
  for (const std::string& key : known) {
    if (key.starts_with(section + ".")) keys.push_back(key);
  }
  return keys;
}

// The sections within one: "train.ema" of "train.ema.decay".
static std::vector<std::string> sections_below(const std::string& section,
                                               const std::vector<std::string>& known) {
  std::set<std::string> sections;
  for (std::string key : keys_below(section, known)) {
    for (key.resize(key.rfind('.')); key != section; key.resize(key.rfind('.'))) {
      sections.insert(key);
    }
  }
  return {sections.begin(), sections.end()};
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

// The only section of that name within another one: "checkpoint.keep_best" for "keep_best".
static std::string inner_section(const std::string& name, const std::vector<std::string>& known) {
  std::set<std::string> found;
  for (const std::string& section : sections_of(known)) {
    for (const std::string& inner : sections_below(section, known)) {
      if (inner.substr(inner.rfind('.') + 1) == name) found.insert(inner);
    }
  }
  return found.size() == 1 ? *found.begin() : "";
}

// A suggestion for an unknown path: a similar key or section of its section, else any similar key,
// else a section of its name, else a similar section, else the keys of its section.
static std::string meant(const std::string& path, const std::vector<std::string>& known) {
  const std::string section = path.substr(0, path.find('.'));
  std::vector<std::string> inside = keys_below(section, known);
  for (std::string& name : sections_below(section, known)) inside.push_back(std::move(name));
  std::string likely = path_suggestion(path, inside);
  if (!likely.empty()) return likely;
  const std::string nearest = nearest_path(path, known);
  if (!nearest.empty()) return "did you mean '" + nearest + "'?";
  const std::string name = path.substr(path.rfind('.') + 1);
  const std::string inner = inner_section(name, known);
  if (!inner.empty()) return "did you mean '" + inner + "'?";
  const std::string other = nearest_name(name, sections_of(known));
  if (!other.empty() && other != section) return "did you mean the section '" + other + "'?";
  for (std::string prefix = path; prefix.find('.') != std::string::npos;) {
    prefix.resize(prefix.rfind('.'));
    const std::vector<std::string> siblings = keys_below(prefix, known);
    if (!siblings.empty()) return "known: " + join(siblings, ", ");
  }
  return path_suggestion(path, known);
}

// Why an entry matches none of the known keys. object: it is an empty object; returns nullopt if
// that is a section.
static std::optional<Error> unknown(const std::string& path, bool object, const std::string& origin,
                                    const std::vector<std::string>& known) {
  const std::vector<std::string> inside = keys_below(path, known);
  if (!inside.empty()) {
    if (object) return std::nullopt;
    return Error(ErrorCode::kUsage, "'" + path + "' is a section, not a value", origin,
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

// Reports all errors, one per line.
static void throw_all(const std::vector<Error>& errors) {
  if (errors.empty()) return;
  if (errors.size() == 1) throw Error(errors[0]);
  const bool more = errors.size() > kErrorsShown;
  std::string text =
      (more ? "more than " + std::to_string(kErrorsShown) : std::to_string(errors.size())) +
      " settings cannot be used:";
  for (size_t i = 0; i < std::min(errors.size(), kErrorsShown); ++i) {
    text += std::string("\n  ") + errors[i].what();
  }
  throw Error(ErrorCode::kUsage, text);
}

static void expand_paths(const std::string& where, ConfigValue* value) {
  const auto expand = [&](ConfigValue::Scalar& one) {
    if (auto* text = std::get_if<std::string>(&one)) *text = expand_home(*text, where);
  };
  if (auto* scalar = std::get_if<ConfigValue::Scalar>(&value->value)) return expand(*scalar);
  for (auto& one : std::get<std::vector<ConfigValue::Scalar>>(value->value)) expand(one);
}

Settings ConfigTree::validate(const Schema& schema) const {
  std::vector<std::string> known;
  std::vector<Error> errors;
  for (const ConfigKey& key : schema.keys()) known.push_back(key.path);
  std::set<std::string> said;
  for (const auto& [path, entry] : entries_) {
    if (std::find(known.begin(), known.end(), path) != known.end()) continue;
    // A key without a name ends with the same sign.
    const bool object =
        path.ends_with(config::kEmptyObject) && !entry.untyped && entry.value.text() == "\"{}\"";
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
        if (entry.objects && !key.objects) {
          throw Error(ErrorCode::kUsage, "'" + key.path + "' cannot be " + entry.value.text(),
                      entry.origin, "write a scalar, or a list of scalars");
        }
        ConfigValue value = config::check(key, entry.value, entry.untyped, entry.origin);
        if (key.is_path) expand_paths(entry.origin + ": '" + key.path + "'", &value);
        settings.entries_[key.path] = {std::move(value), entry.origin};
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
