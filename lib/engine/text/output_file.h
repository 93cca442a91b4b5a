// Checks the file that a command on texts writes, before it reads or writes anything.
#pragma once

#include <string>
#include <vector>

namespace fleet::text {

// kUsage naming `output` if it is "-", is in a folder that does not exist, is not a regular file,
// or is one of `inputs`, by whatever name or link: the result would replace it. Inputs that do not
// exist are left to their reader.
void check_output_file(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace fleet::text
