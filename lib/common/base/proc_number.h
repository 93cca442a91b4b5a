// The numbers of processes in /proc. They are not pids if /proc belongs to another pid namespace:
// that of the host, in a sandbox that made a namespace but no /proc of its own.
#pragma once

#include <sys/types.h>

namespace fleet {

// This process's number in /proc: for paths like /proc/N/fd/3 that other processes open. Its pid if
// /proc does not show it.
pid_t own_proc_number();

}  // namespace fleet
