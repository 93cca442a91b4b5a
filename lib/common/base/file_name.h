// File names made from user-supplied text.
#pragma once

#include <string>

namespace fleet {

// Part of a file name: each character other than [A-Za-z0-9._-] becomes _. A text of more than 100
// bytes is cut and ends in a digest of the whole text.
std::string file_name_component(std::string text);

}  // namespace fleet
