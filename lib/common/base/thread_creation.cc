// pthread_create() of fleetrun and fleet-worker, for every library in them.
//
// gRPC ignores that a thread could not be created, and waits forever for its work; libgomp ends the
// process without naming a limit. An unhandled refusal ends the program here, with a line that
// names the limit. A refusal that passes, because other processes of the user start and end, does
// not: the call is repeated for a while.
//
// Linked into the programs, not into a module: libfleetrun must not replace a function of the
// programs that load it, and sanitizers have their own.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/sudden_end.h"
#include "base/thread.h"

namespace {

// Each pause is twice as long as the previous one: half a second in all, or four.
constexpr int kFirstPauseMs = 1, kLastIfHandledMs = 256, kLastPauseMs = 2048;

// Does not log: the caller may hold any lock.
[[noreturn]] void end_program(int error) {
  const fleet::SystemError refused(fleet::ErrorCode::kIo, "cannot create a thread", error,
                                   program_invocation_short_name, fleet::Wanted::kProcess);
  const std::string line = std::string(refused.what()) + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  fleet::remove_own_files();
  ::_exit(1);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*body)(void*),
                                                             void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  const bool handled = fleet::HandlesRefusedThreads::any();
  const int last = handled ? kLastIfHandledMs : kLastPauseMs;
  int error = create(thread, attributes, body, argument);
  for (int pause = kFirstPauseMs; error == EAGAIN && pause <= last; pause *= 2) {
    ::poll(nullptr, 0, pause);
    error = create(thread, attributes, body, argument);
  }
  if (error != 0 && !handled) end_program(error);
  return error;
}
