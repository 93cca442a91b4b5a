// Lists of numbers for human readers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fleet {

// {0, 1, 2, 5} -> "0-2,5". `sorted`: ascending.
std::string ranges_text(std::span<const int> sorted);
// "3" or "0-2"; false for anything else, and for a range that descends.
bool parse_range(std::string_view text, long long* first, long long* last);

}  // namespace fleet
