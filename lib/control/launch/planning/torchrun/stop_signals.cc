#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/launch_config.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

// The number of a signal name; 0 if unknown.
int signal_number(const std::string& name) {
  for (int number = 1; number < SIGRTMIN; ++number) {
    if (signal_name(number) == name) return number;
  }
  return 0;
}

}  // namespace

std::vector<int> read_stop_signals(const Settings& settings) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, what, settings.origin("signals_to_handle"),
                "write it like SIGTERM,SIGINT,SIGUSR1");
  };
  std::vector<int> signals;
  for (const std::string& name : split(settings.text("signals_to_handle"), ',')) {
    const int number = signal_number(name);
    if (number == 0) refuse("unknown signal '" + name + "'");
    // The launcher itself needs SIGCHLD and SIGPIPE; the fault signals cannot be blocked and waited
    // for.
    for (const int other : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGCHLD, SIGPIPE}) {
      if (number == other) refuse(name + " cannot be handled");
    }
    if (std::find(signals.begin(), signals.end(), number) == signals.end()) {
      signals.push_back(number);
    }
  }
  return signals;
}

std::vector<int> forwarded_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::erase_if(signals, [](int signal) {
    struct sigaction action;
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  });
  return signals;
}

std::string signal_names(const std::vector<int>& signals) {
  std::vector<std::string> names;
  for (const int signal : signals) names.push_back(signal_name(signal));
  return join(names, ",");
}

}  // namespace fleet
