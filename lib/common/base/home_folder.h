// A leading "~" of a path that a user gives: in a job file, behind '=' of an option, and in a
// container's arguments no shell expands it.
#pragma once

#include <optional>
#include <string>

namespace fleet {

// HOME, or the folder of the password database; "" if neither is known. Thread-safe.
std::string home_folder();

// "~" and "~/x" below the home folder; other paths unchanged. kUsage for "~name", which would be a
// file of that name in the working directory (write "./~name"), and if no home folder is known.
// `where`: what names the path, for the error; "": the path.
std::string expand_home(const std::string& path, const std::string& where = {});

// The value of an environment variable that is a path, expanded. Errors as above.
std::optional<std::string> get_env_path(const std::string& name);

}  // namespace fleet
