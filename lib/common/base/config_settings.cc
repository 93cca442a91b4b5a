#include "base/config.h"
#include "base/error.h"

namespace fleet {

using Scalar = ConfigValue::Scalar;

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

template <typename T>
static std::vector<T> settings_list_of(const ConfigValue& value) {
  std::vector<T> all;
  for (const Scalar& element : std::get<std::vector<Scalar>>(value.value))
    all.push_back(std::get<T>(element));
  return all;
}

bool Settings::boolean(const std::string& path) const { return scalar<bool>(path); }
int64_t Settings::integer(const std::string& path) const { return scalar<int64_t>(path); }
double Settings::number(const std::string& path) const { return scalar<double>(path); }
const std::string& Settings::text(const std::string& path) const {
  return scalar<std::string>(path);
}
std::vector<int64_t> Settings::integers(const std::string& path) const {
  return settings_list_of<int64_t>(entry(path).value);
}
std::vector<double> Settings::numbers(const std::string& path) const {
  return settings_list_of<double>(entry(path).value);
}
std::vector<std::string> Settings::texts(const std::string& path) const {
  return settings_list_of<std::string>(entry(path).value);
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

}  // namespace fleet
