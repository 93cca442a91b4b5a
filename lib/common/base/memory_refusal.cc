// mmap() of fleetrun and fleet-worker, for every library in them.
//
// oneDNN compiles its kernels into memory of its own and crashes if it gets none. So a refusal of
// memory is reported at once, with the limit behind it; the caller decides whether it ends the
// program. Requests that are likely to fail, for a fixed address or for huge pages, are not
// reported.
//
// Linked into the programs, not into a module, as thread_creation.cc is.
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/file.h"

namespace {

// Does not log: the caller may hold any lock.
void say_refused(size_t size) {
  std::string line;
  try {
    const fleet::SystemError refused(fleet::ErrorCode::kIo,
                                     "cannot get " + std::to_string(size) + " bytes of memory",
                                     ENOMEM, program_invocation_short_name);
    line = std::string(refused.what()) + "\n";
  } catch (const std::exception&) {  // no memory for the line either
    static constexpr char kLine[] = "out of memory\n";
    (void)!::write(STDERR_FILENO, kLine, std::strlen(kLine));
  }
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void* mmap(void* address, size_t size, int protection,
                                                     int flags, int file, off_t offset) noexcept {
  using Map = void* (*)(void*, size_t, int, int, int, off_t);
  static const auto map = reinterpret_cast<Map>(::dlsym(RTLD_NEXT, "mmap"));
  void* const mapped = map(address, size, protection, flags, file, offset);
  if (mapped != MAP_FAILED || errno != ENOMEM) return mapped;
  const bool may_fail = address || (flags & (MAP_HUGETLB | MAP_NORESERVE | MAP_LOCKED)) != 0;
  if ((flags & MAP_ANONYMOUS) != 0 && !may_fail) say_refused(size);
  errno = ENOMEM;
  return MAP_FAILED;
}
