// The folder in which this user's fleetruns on this node keep their records and sockets.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// FLEET_RUNTIME_DIR, or $XDG_RUNTIME_DIR/fleetrun, or /tmp/fleetrun-UID. An XDG_RUNTIME_DIR of
// another user (su, sudo -E) is ignored with a warning, once per process.
std::string runtime_folder();

// Throws kUsage, naming the owner, if the folder is not private to this user: it must then not be
// used or even read. Throws kNotFound if it does not exist.
void check_runtime_folder(const std::string& folder);

// The files there whose names have this ending; none if there is no such folder. Throws like
// check_runtime_folder().
std::vector<std::string> files_in_runtime_folder(const std::string& ending);

// runtime_folder(), created if necessary (0700), and checked. Throws kUsage or kIo.
std::string make_runtime_folder();

}  // namespace fleet
