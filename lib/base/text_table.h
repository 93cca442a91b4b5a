// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// A line a row, columns as wide as their widest cell and two blanks apart, `indent` before each.
std::string aligned(const std::vector<std::vector<std::string>>& rows,
                    const std::string& indent = {});

}  // namespace fleet
