// Signals that a program's starter may have blocked.
#pragma once

namespace fleet {

// Lets this thread, and those that it starts later, receive SIGTERM, SIGINT, SIGHUP, SIGQUIT,
// SIGUSR1, SIGUSR2 and SIGALRM: a blocked mask survives exec(), and only SIGKILL would end the
// program.
void unblock_signals();

}  // namespace fleet
