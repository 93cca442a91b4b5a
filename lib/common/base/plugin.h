// Parts of a program that are loaded only when needed, because they depend on libraries that not
// every machine has.
#pragma once

#include <string>

namespace fleet {

// Loads lib<name>.so from the program's folder, from ../lib/fleetrun, or from fleetrun/ next to the
// shared library that contains this code; its contents register themselves. It stays loaded as
// long as the process. Returns "" or, as a clause, why it could not be loaded.
//   what  its content, for the message: "cuda backend"
std::string load_plugin(const std::string& name, const std::string& what);

// Whether this build has the plugin.
bool plugin_exists(const std::string& name);

}  // namespace fleet
