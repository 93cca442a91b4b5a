// Where the secret that the nodes of a job share comes from (docs/explanation/security.md).
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/security.h"

namespace fleet {

inline constexpr char kEnvJobSecret[] = "FLEET_JOB_SECRET";

// $XDG_CONFIG_HOME/fleetrun/secret or ~/.config/fleetrun/secret; "" where there is no home.
std::string default_secret_path();

// A secret as text, without the blanks around it. kUsage, naming its origin, where it is none.
std::string checked_secret(std::string_view text, const std::string& origin);

// The secret in a file, without the blanks around it; "-" is the standard input. kUsage where
// others may read or replace the file, or it holds no secret; kNotFound and kIo as read_file().
std::string read_secret(const std::string& path);

// Makes a secret there (0600, its folder 0700) unless there is one; never replaces one, also where
// many processes try at once on a shared file system. Whether this call made it. kIo.
bool make_secret(const std::string& path);

// A secret of several nodes, by mutual TLS: from `file` (--secret_file; "": not given), else
// FLEET_JOB_SECRET, else the default file, which `make` makes where it is missing. kUsage where
// there is none, saying what to do.
struct FoundSecret {
  Security security;
  bool made = false;  // just now: nodes that do not share the home have another
};
FoundSecret find_secret(const std::string& file, bool make);

}  // namespace fleet
