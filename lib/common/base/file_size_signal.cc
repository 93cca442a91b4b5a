#include "base/file_size_signal.h"

#include <signal.h>

namespace fleet {
namespace {

bool replaced = false;  // by the main thread, before there are others

}  // namespace

void ignore_file_size_signal() { replaced = ::signal(SIGXFSZ, SIG_IGN) == SIG_DFL; }

bool file_size_signal_is_replaced() { return replaced; }

void restore_file_size_signal() {
  if (replaced) ::signal(SIGXFSZ, SIG_DFL);
}

}  // namespace fleet
