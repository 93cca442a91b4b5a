// A rank's log on this host.
#pragma once

#include <sys/types.h>

#include <string>

namespace fleet {

// Copies it to standard output; with a launcher's pid it goes on until that has ended. The exit
// code. kIo where it cannot be read.
int show_local_log(const std::string& path, pid_t launcher);

}  // namespace fleet
