#include "node/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/owned_file.h"

namespace fleet {

void set_history_aside(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return;
  for (int number = 1;; ++number) {
    const std::string aside = path + "." + std::to_string(number);
    if (std::filesystem::symlink_status(aside).type() != std::filesystem::file_type::not_found) {
      continue;
    }
    if (::rename(path.c_str(), aside.c_str()) != 0) throw_errno("cannot be renamed", path);
    return;
  }
}

void append_history(const std::string& path, const std::string& lines) {
  const UniqueFd file = open_owned_file(path, O_RDWR | O_CREAT | O_APPEND);
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  char last = '\n';
  const bool cut = size > 0 && ::pread(file.get(), &last, 1, size - 1) == 1 && last != '\n';
  try {
    write_all(file.get(), (cut ? "\n" : "") + lines, path);
  } catch (const Error&) {  // a full disk
    (void)!::ftruncate(file.get(), size);
    throw;
  }
}

}  // namespace fleet
