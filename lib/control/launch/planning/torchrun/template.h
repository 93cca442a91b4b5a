// Texts with ${names}, with the syntax of Python's string.Template.safe_substitute().
#pragma once

#include <map>
#include <string>

namespace fleet {

// Replaces $NAME and ${NAME} if NAME is a key of `values`, and "$$" by "$". Leaves everything else
// unchanged.
std::string fill_template(const std::string& text,
                          const std::map<std::string, std::string>& values);

}  // namespace fleet
