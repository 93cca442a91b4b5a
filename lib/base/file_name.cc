#include "base/file_name.h"

namespace fleet {

std::string file_word(std::string text) {
  for (char& c : text) {
    const bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || c == '.';
    if (!fine) c = '_';
  }
  return text;
}

}  // namespace fleet
