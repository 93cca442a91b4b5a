// Tables for human readers.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// One line per row; columns are as wide as their widest cell and two blanks apart, with `indent`
// before each line.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         const std::string& indent = {});

}  // namespace fleet
