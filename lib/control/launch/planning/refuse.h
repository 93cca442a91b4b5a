// Values that a user gave, with their origin, and refusals of them.
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "base/error.h"

namespace fleet {

// An option's value together with where it came from. Messages about the value name its origin:
// "--host", "environment POD_IP".
template <typename T>
struct Sourced {
  T value = {};  // the default unless given()
  std::string origin = "default";

  bool given() const { return origin != "default"; }
  // Values from the environment may be meant for other jobs as well.
  bool by_flag() const { return origin.starts_with("-"); }
  // "--host 10.0.0.1"
  std::string with(const std::string& text) const { return origin + " " + text; }
};

// `value`: read from option `key`.
template <typename T>
Sourced<T> sourced(const Settings& settings, const char* key, T value) {
  return {std::move(value), settings.origin(key)};
}
// nullopt if the option is not given, or has a negative value, which stands for none.
inline Sourced<std::optional<int>> sourced_integer(const Settings& settings, const char* key) {
  Sourced<std::optional<int>> number{std::nullopt, settings.origin(key)};
  const auto value = static_cast<int>(settings.integer(key));
  if (number.given() && value >= 0) number.value = value;
  return number;
}

// Throws kUsage; the parameters are Error's.
[[noreturn]] inline void refuse(std::string what, std::string where = {}, std::string next = {}) {
  throw Error(ErrorCode::kUsage, std::move(what), std::move(where), std::move(next));
}

}  // namespace fleet
