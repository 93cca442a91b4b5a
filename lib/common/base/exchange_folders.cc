#include "base/exchange_folders.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/sync.h"

namespace fleet {
namespace {

void rename_or_throw(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_errno("cannot rename", from);
}

}  // namespace

int rename_exchange(const char* one, const char* other) {
  return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

void exchange_folders(const std::string& one, const std::string& other,
                      int (*exchange)(const char*, const char*)) {
  if (exchange(one.c_str(), other.c_str()) == 0) return;
  if (!is_not_supported(errno) && errno != EPERM && errno != EACCES) {
    throw_errno("cannot rename", other);
  }
  const std::string aside = other + ".old.part";
  std::filesystem::remove_all(aside);  // left by a killed process
  rename_or_throw(other, aside);
  try {
    rename_or_throw(one, other);
  } catch (...) {
    rename_or_throw(aside, other);
    throw;
  }
  rename_or_throw(aside, one);
}

}  // namespace fleet
