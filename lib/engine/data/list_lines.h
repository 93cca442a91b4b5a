// Lines of a list of files.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fleet::data {

// Calls body for each line of the file, without its newline. Never holds the whole file in memory.
// A binary file fails soon, because a line must not be longer than a path can be. kUsage, kIo,
// kNotFound naming the list.
void for_each_line(const std::string& list, const std::function<void(std::string_view)>& body);

}  // namespace fleet::data
