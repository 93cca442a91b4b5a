// Finds the secret that the nodes of a job share (docs/explanation/security.md).
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/security.h"

namespace fleet {

inline constexpr char kEnvJobSecret[] = "FLEET_JOB_SECRET";

// $XDG_CONFIG_HOME/fleetrun/secret or ~/.config/fleetrun/secret; "" if there is no home.
std::string default_secret_path();

// A secret from text, trimmed. Throws kUsage, naming the origin, if it is not valid.
std::string checked_secret(std::string_view text, const std::string& origin);

// The secret in a file, trimmed; "-" is standard input. Throws kUsage if other users may read or
// replace the file or it holds no secret; kNotFound and kIo as read_file() does.
std::string read_secret(const std::string& path);

// Creates a secret (0600, its folder 0700) unless one exists. Never replaces one, even if many
// processes try at once on a shared file system. Returns whether this call created it. Throws kIo.
bool make_secret(const std::string& path);

// The secret of a job on several nodes, for mutual TLS: from `file` (--secret_file; "": not given),
// else FLEET_JOB_SECRET, else the default file, which `make` creates if missing. Throws kUsage,
// with instructions, if there is none.
struct FoundSecret {
  Security security;
  bool made = false;  // created just now: nodes that do not share this home have another
};
FoundSecret find_secret(const std::string& file, bool make);

}  // namespace fleet
