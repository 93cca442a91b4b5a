// The part of YAML in which launchers' configuration files are written.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace fleet {

// Block mappings and lists of scalars, flow lists of scalars, quotes and comments, with PyYAML's
// types: "no" is false, "1e-5" a text. Throws kUsage, naming `where` and the line, for anything
// else.
Json parse_yaml(std::string_view text, const std::string& where);

}  // namespace fleet
