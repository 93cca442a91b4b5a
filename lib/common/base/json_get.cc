// Conversions of JSON values.
#include "base/json.h"

namespace fleet {
namespace {

template <typename T>
std::vector<T> list_of(const Json& json) {
  std::vector<T> list;
  list.reserve(json.size());
  for (const Json& element : json.elements()) list.push_back(element.get<T>());
  return list;
}

template <typename T>
std::map<std::string, T> map_of(const Json& json) {
  std::map<std::string, T> members;
  const Json* value = json.begin();
  for (const std::string& key : json.keys()) members.emplace(key, (value++)->get<T>());
  return members;
}

}  // namespace

template <>
Json Json::get<Json>() const {
  return *this;
}
template <>
bool Json::get<bool>() const {
  if (!is_boolean()) refuse_type("boolean");
  return std::get<bool>(value_);
}

template <>
int64_t Json::get<int64_t>() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value_)) return static_cast<int64_t>(*number);
  if (const auto* number = std::get_if<double>(&value_)) return static_cast<int64_t>(*number);
  refuse_type("number");
}

template <>
uint64_t Json::get<uint64_t>() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return static_cast<uint64_t>(*number);
  if (const auto* number = std::get_if<uint64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<double>(&value_)) return static_cast<uint64_t>(*number);
  refuse_type("number");
}

template <>
double Json::get<double>() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&value_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  refuse_type("number");
}

// Unlike an int64_t, also from a bool, and straight from a double: as nlohmann does it.
template <>
int Json::get<int>() const {
  if (is_boolean()) return std::get<bool>(value_) ? 1 : 0;
  if (const auto* number = std::get_if<double>(&value_)) return static_cast<int>(*number);
  return static_cast<int>(get<int64_t>());
}

template <>
std::string Json::get<std::string>() const {
  if (!is_string()) refuse_type("string");
  return std::get<std::string>(value_);
}

template <>
std::vector<int> Json::get<std::vector<int>>() const {
  return list_of<int>(*this);
}

template <>
std::vector<int64_t> Json::get<std::vector<int64_t>>() const {
  return list_of<int64_t>(*this);
}

template <>
std::vector<uint64_t> Json::get<std::vector<uint64_t>>() const {
  return list_of<uint64_t>(*this);
}

template <>
std::vector<double> Json::get<std::vector<double>>() const {
  return list_of<double>(*this);
}

template <>
std::vector<std::string> Json::get<std::vector<std::string>>() const {
  return list_of<std::string>(*this);
}

template <>
std::map<std::string, std::string> Json::get<std::map<std::string, std::string>>() const {
  if (!is_object()) refuse_type("object");
  return map_of<std::string>(*this);
}

template <>
std::map<std::string, double> Json::get<std::map<std::string, double>>() const {
  if (!is_object()) refuse_type("object");
  return map_of<double>(*this);
}

}  // namespace fleet
