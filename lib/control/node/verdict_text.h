// The texts in which a launcher reports the end of a rank or of the job. Pure.
#pragma once

#include <string>

#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

// The parts of a text about the end of a rank.
struct ExitText {
  bool colors = false;     // the last lines keep theirs
  bool abort_line = true;  // Paddle's
  bool last_lines = true;  // its log's
};

// Whose output a console shows, of the ranks that are shown there.
enum class ShownOutput { kNone, kOfThisNode, kOfAllNodes };

// How messages describe the end of a rank.
struct MessageStyle {
  bool colors = false;  // the program's last lines keep their colours
  bool brief = false;   // without Paddle's ABORT line, and without lines that the console has shown
  ShownOutput shown = ShownOutput::kNone;
};

// The parts of a text about `exit` that this style shows. own_node: this node's rank; -1: none yet.
ExitText exit_text(const MessageStyle& style, const RankExit& exit, int own_node);

// The cause (headline()), Paddle's ABORT line, the place, and the last lines of the
// rank's log; or the message of another kind of verdict. Empty for a success. `world`: the job's;
// nullptr if it did not run.
std::string verdict_text(const Verdict& verdict, const World* world, ExitText text = {});
// Why the job restarts, and the last lines of the failed rank's log.
std::string restart_text(const RestartCommand& command, ExitText text = {});
// Why a trainer is started again in its place.
std::string replacement_text(const wire::ReplaceCommand& command, ExitText text = {});

}  // namespace fleet
