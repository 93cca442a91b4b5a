// JSON to and from the values of a ConfigTree. For config*.cc, and for kEmptyObject.
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "base/json.h"

namespace fleet::config {
using Scalar = ConfigValue::Scalar;

// An empty object leaves an entry under its path followed by this character: validate() then tells
// a section from a key without a value and from an unknown name.
inline constexpr char kEmptyObject = '.';

// nullopt for null, objects and lists.
std::optional<Scalar> to_scalar(const Json& json);
// A scalar, or a list of scalars; nullopt for anything else. objects: a list may have objects, too,
// which become their text; set to whether there are some.
std::optional<ConfigValue> to_value(const Json& json, bool* objects);

}  // namespace fleet::config
