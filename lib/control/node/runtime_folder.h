// The folder in which this user's fleetruns on this node keep their records and sockets.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// FLEET_RUNTIME_DIR, or $XDG_RUNTIME_DIR/fleetrun, or /tmp/fleetrun-UID. An XDG_RUNTIME_DIR of
// another user (su, sudo -E) is ignored with a warning, once per process.
std::string runtime_folder();

// Where records of jobs may be: runtime_folder(), and, unless FLEET_RUNTIME_DIR names it, that of a
// login session and that of processes without one (cron, su, after a logout).
std::vector<std::string> runtime_folders();

// Throws kUsage, naming the owner, if the folder is not private to this user: it must then not be
// used or even read. Throws kNotFound if it does not exist.
void check_runtime_folder(const std::string& folder);

// Those of runtime_folders() that exist and may be used. Throws kUsage like check_runtime_folder(),
// for runtime_folder() itself.
std::vector<std::string> usable_runtime_folders();

// The files there whose names have this ending. Throws like usable_runtime_folders().
std::vector<std::string> files_in_runtime_folders(const std::string& ending);

// runtime_folder(), created if necessary (0700), and checked. Throws kUsage or kIo.
std::string make_runtime_folder();

}  // namespace fleet
