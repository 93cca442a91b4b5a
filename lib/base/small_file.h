// Files of the kernel, and others of a line or a few.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace fleet {

// Its content without the blanks around it; "" where it cannot be read, or is there no longer.
inline std::string small_file(const std::string& path) {
  try {
    return std::string(trim(read_file(path)));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace fleet
