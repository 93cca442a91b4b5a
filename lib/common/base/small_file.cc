#include "base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace fleet {

std::string small_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::read(file.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(size));
  }
  return size < 0 ? std::string() : std::string(trim(text));
}

}  // namespace fleet
