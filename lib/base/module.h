// Parts of a program that are loaded only where they are wanted, because they need libraries that
// not every machine has.
#pragma once

#include <string>

namespace fleet {

// Loads lib<name>.so from beside the program, from ../lib/fleetrun, or from fleetrun/ beside the
// shared library that this is linked into; what is in it registers itself. It stays loaded as long
// as the process. Returns "" or, in a clause, why it could not be loaded.
//   what  it holds, for the message: "cuda backend"
std::string load_module(const std::string& name, const std::string& what);

}  // namespace fleet
