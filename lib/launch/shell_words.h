// Text that a shell would take apart.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// The words of `text`, at its blanks: '..', ".." and \ keep blanks together, as in a shell, and
// nothing else has a meaning. kUsage, naming `origin`, for a quote that is not closed.
std::vector<std::string> shell_words(const std::string& text, const std::string& origin);

}  // namespace fleet
