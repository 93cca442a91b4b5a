// Texts with ${names} in them, as Python's string.Template.safe_substitute() reads them.
#pragma once

#include <map>
#include <string>

namespace fleet {

// Replaces $NAME and ${NAME} where NAME is a key of `values`, and "$$" by "$". Everything else
// stays as it is.
std::string fill_template(const std::string& text,
                          const std::map<std::string, std::string>& values);

}  // namespace fleet
