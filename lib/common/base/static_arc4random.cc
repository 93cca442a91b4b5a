// libstdc++.a of Debian 12 calls arc4random(), which glibc has since 2.36. A statically linked
// program takes this definition instead and starts where glibc is 2.35, as on Ubuntu 22.04
// (scripts/cmake/static_program.cmake).
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // getrandom() returns this few bytes whole. It fails only where the kernel does not have it.
  if (::getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
