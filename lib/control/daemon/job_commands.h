// fleetrun ls, status, logs, attach and stop.
#pragma once

#include "base/command_line.h"

namespace fleet {

Command attach_command();
Command logs_command();
Command ls_command();
Command status_command();
Command stop_command();

}  // namespace fleet
