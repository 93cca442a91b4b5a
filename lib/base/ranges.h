// Numbers as people read them.
#pragma once

#include <span>
#include <string>

namespace fleet {

// {0, 1, 2, 5} -> "0-2,5". `sorted`: rising.
std::string ranges_text(std::span<const int> sorted);

}  // namespace fleet
