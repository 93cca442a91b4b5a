// A value against what its key declares. For config*.cc.
#pragma once

#include <string>

#include "base/config.h"

namespace fleet::config {

// "an integer", "a list of texts"
const char* name_of(ConfigType type);
// "from 1 to 8", "one of a, b"; "" where anything of the type will do.
std::string range_of(const ConfigKey& key);
// The value as the key's type. loose: it came as text, which is read as what the key wants. kUsage
// naming key, value and what it must be.
ConfigValue check(const ConfigKey& key, const ConfigValue& given, bool loose,
                  const std::string& origin);

}  // namespace fleet::config
