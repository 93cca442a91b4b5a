#include "base/proc_number.h"

#include <unistd.h>

#include <string>

#include "base/text.h"

namespace fleet {

pid_t own_proc_number() {
  char link[32];
  const ssize_t size = ::readlink("/proc/self", link, sizeof link);
  long long number = 0;
  if (size <= 0 || !parse_int(std::string(link, static_cast<size_t>(size)), &number)) {
    return ::getpid();
  }
  return static_cast<pid_t>(number);
}

}  // namespace fleet
