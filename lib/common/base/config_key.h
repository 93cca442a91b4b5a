// Checks a value against the declaration of its key. For config*.cc.
#pragma once

#include <string>

#include "base/config.h"

namespace fleet::config {

// "an integer", "a list of strings"
const char* name_of(ConfigType type);
// "from 1 to 8", "one of a, b"; "" if any value of the type is allowed.
std::string range_of(const ConfigKey& key);
// Converts the value to the key's type. untyped: it came as text, which is parsed as the key's
// type. Throws kUsage naming key, value and what it must be.
ConfigValue check(const ConfigKey& key, const ConfigValue& given, bool untyped,
                  const std::string& origin);

}  // namespace fleet::config
