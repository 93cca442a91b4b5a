// Inputs and outputs of networks, by name.
#pragma once

#include <map>
#include <string>

#include "graph/program.h"

namespace fleet {

using NamedVars = std::map<std::string, VarId>;

// kNoVar if no variable has this name.
inline VarId find_var(const NamedVars& vars, const std::string& name) {
  const auto found = vars.find(name);
  return found == vars.end() ? kNoVar : found->second;
}

}  // namespace fleet
