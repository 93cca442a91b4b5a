// Conversions of JSON scalars.
#include "base/json.h"

namespace fleet {

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

}  // namespace fleet
