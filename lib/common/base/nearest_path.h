// Suggestions for mistyped paths of keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fleet {

// Like nearest_name(), for a dotted path. Its last name counts: "a.lr" is not near "a.low",
// although most of their letters are equal.
std::string nearest_path(std::string_view path, std::span<const std::string> known);

}  // namespace fleet
