#include "node/rank_stops.h"

#include <signal.h>

#include "node/process_tree.h"
#include "rendezvous/types.h"

namespace fleet {

bool is_terminal_stop(int signal) { return signal == SIGTTIN || signal == SIGTTOU; }

std::string terminal_stop_text(const std::string& rank, int signal) {
  const bool reads = signal == SIGTTIN;
  return rank + " is stopped (" + signal_name(signal) + "): it " +
         (reads ? "reads from" : "writes to") +
         " the terminal (/dev/tty), which only fleetrun may use, and waits. Answer its "
         "question before the start, or switch it off, for example with GIT_TERMINAL_PROMPT=0, "
         "ssh -o BatchMode=yes, or setsid before the program";
}

void signal_all(const std::vector<pid_t>& groups, const std::vector<pid_t>& except, int signal) {
  for (const pid_t group : groups) ::kill(-group, signal);
  for (const pid_t pid : descendants(except)) ::kill(pid, signal);
}

void suspend_self() {
  struct sigaction usual = {}, before = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGTSTP, &usual, &before);
  sigset_t only, mask;
  ::sigemptyset(&only);
  ::sigaddset(&only, SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &only, &mask);
  ::raise(SIGTSTP);  // returns when this process is continued
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGTSTP, &before, nullptr);
}

}  // namespace fleet
