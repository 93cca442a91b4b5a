// Kernel files, and other files of a few lines.
#pragma once

#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace fleet {

// The content without surrounding blanks; "" if the file cannot be read or no longer exists.
inline std::string small_file(const std::string& path) {
  try {
    return std::string(trim(read_file(path)));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace fleet
