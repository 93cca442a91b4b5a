// Texts of users and programs in tables and messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fleet {

// At most `most` (3 or more) characters, with "..." in place of the cut part; control characters
// (C0, C1, DEL) and bytes that are not UTF-8 become '?'.
std::string one_line(std::string_view text, size_t most);

}  // namespace fleet
