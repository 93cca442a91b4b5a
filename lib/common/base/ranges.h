// Lists of numbers for human readers.
#pragma once

#include <span>
#include <string>

namespace fleet {

// {0, 1, 2, 5} -> "0-2,5". `sorted`: ascending.
std::string ranges_text(std::span<const int> sorted);

}  // namespace fleet
