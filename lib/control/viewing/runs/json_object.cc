#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/number_text.h"
#include "viewing/runs/run_history.h"

namespace fleet {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargestNumber = 1e300;  // differences of larger ones overflow
constexpr size_t kLongestList = 1'000'000;

// Replaces names that JSON lacks, outside of strings.
std::string without_infinities(std::string_view line) {
  std::string text;
  bool quoted = false;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == '"') quoted = !quoted;
    if (quoted && line[i] == '\\' && i + 1 < line.size()) text += line[i++];
    size_t length = 0;
    for (const std::string_view name : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && length == 0 && line.substr(i).starts_with(name)) length = name.size();
    }
    if (length > 0) {
      text += "null";
      i += length;
    } else {
      text += line[i++];
    }
  }
  return text;
}

double number_of(const Json& value) {
  if (!value.is_number()) return kNoNumber;
  const double number = value.get<double>();
  return std::abs(number) <= kLargestNumber ? number : kNoNumber;
}

}  // namespace

std::optional<JsonObject> JsonObject::parse(std::string_view text) {
  auto value = Json::try_parse(text);
  if (!value) value = Json::try_parse(without_infinities(text));
  if (!value || !value->is_object()) return std::nullopt;
  value->sort_keys();
  return JsonObject(*std::move(value));
}

const Json* JsonObject::list(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_array() && found->size() <= kLongestList ? found : nullptr;
}

bool JsonObject::has(const std::string& key) const { return value_->find(key) != nullptr; }

double JsonObject::number(const std::string& key) const {
  const Json* found = value_->find(key);
  return found ? number_of(*found) : kNoNumber;
}

std::string JsonObject::text(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

bool JsonObject::is_true(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_boolean() && found->get<bool>();
}

std::string JsonObject::shown(const std::string& key) const {
  const Json* found = value_->find(key);
  if (!found || found->is_null()) return "-";
  if (found->is_number_float()) return number_text(found->get<double>());
  return found->is_string() ? found->get<std::string>() : found->dump_lossy();
}

std::string JsonObject::json(const std::string& key) const {
  const Json* found = value_->find(key);
  return found ? found->dump_lossy() : std::string();
}

std::optional<JsonObject> JsonObject::object(const std::string& key) const {
  const Json* found = value_->find(key);
  return found && found->is_object() ? std::optional(JsonObject(*found)) : std::nullopt;
}

std::vector<double> JsonObject::numbers(const std::string& key) const {
  std::vector<double> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) all.push_back(number_of(value));
  }
  return all;
}

std::vector<std::string> JsonObject::texts(const std::string& key) const {
  std::vector<std::string> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) {
      if (value.is_string()) all.push_back(value.get<std::string>());
    }
  }
  return all;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  std::vector<JsonObject> all;
  if (const Json* found = list(key)) {
    for (const Json& value : *found) {
      if (value.is_object()) all.push_back(JsonObject(value));
    }
  }
  return all;
}

void JsonObject::for_each_number(
    const std::function<void(const std::string&, double)>& call) const {
  for (const auto& [name, value] : value_->items()) {
    if (value.is_number() || value.is_null()) call(name, number_of(value));
  }
}

}  // namespace fleet
