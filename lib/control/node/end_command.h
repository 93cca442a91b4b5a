// The command of --on_end: it learns how the job ended.
#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "node/guardian.h"
#include "rendezvous/types.h"

namespace fleet {

// Its output, in the log folder.
inline constexpr char kEndCommandLog[] = "/on_end.log";

// Whether this node runs the command: the one that hosts the rendezvous; if that one is lost, the
// first of the others. A node that was cut off may run it too: rather twice than never.
bool runs_end_command(const Verdict& verdict, bool hosts_rendezvous, int node_rank);

struct EndCommand {
  std::string command;  // for sh -c
  std::string input;    // on its standard input
  std::string log;      // its output; if that cannot be opened, it goes to standard error
  std::chrono::milliseconds limit{10'000};
  sigset_t signal_mask;                     // the command's
  std::optional<CallerLimits> limits = {};  // the command's; nullopt: those of this process
  std::vector<int> stop_signals;            // each ends it early
};
// Runs it to its end, with all processes of its group; kills the group at the limit. Failures are
// warnings. Call it from the only thread that does not block signals.
void run_end_command(const EndCommand& end);

}  // namespace fleet
