// Comma-separated values (RFC 4180).
#pragma once

#include <string>

namespace fleet {

// A field of a line, quoted if it has to be.
std::string csv_field(const std::string& text);

}  // namespace fleet
