#include "base/file_name.h"

#include <cstdint>
#include <cstdio>

namespace fleet {
namespace {

constexpr size_t kLongestName = 100;

// FNV-1a.
std::string digest_of(const std::string& text) {
  uint64_t digest = 14695981039346656037u;
  for (const char c : text) {
    digest = (digest ^ static_cast<unsigned char>(c)) * uint64_t{1099511628211};
  }
  char word[20];
  std::snprintf(word, sizeof word, ".%016llx", static_cast<unsigned long long>(digest));
  return word;
}

}  // namespace

std::string file_name_component(std::string text) {
  if (text.size() > kLongestName) {
    const std::string digest = digest_of(text);
    text = text.substr(0, kLongestName - digest.size()) + digest;
  }
  for (char& c : text) {
    const bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || c == '.';
    if (!fine) c = '_';
  }
  return text;
}

}  // namespace fleet
