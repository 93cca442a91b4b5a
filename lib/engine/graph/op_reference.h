// The operations that a network may apply, with their slots and attributes, for
// docs/reference/operations.md.
#pragma once

#include <string>

namespace fleet {

// Every registered operation that has a `help`, by name, in Markdown.
std::string operations_markdown();

}  // namespace fleet
