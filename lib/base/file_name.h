// Names of files made from texts of users.
#pragma once

#include <string>

namespace fleet {

// A part of a file name: whatever is not [A-Za-z0-9._-] becomes _. A text of more than 100 bytes is
// cut, and ends in a digest of all of it.
std::string file_word(std::string text);

}  // namespace fleet
