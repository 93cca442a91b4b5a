// Authentication in the control plane (docs/explanation/security.md): configured once by the
// launcher or daemon, then passed to every server and channel. No gRPC and no OpenSSL here.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// Default: open to every client that reaches the port (--insecure, and tests).
struct Security {
  // The shared secret: any text of at least kMinSecret characters; "" if open.
  std::string secret;
  // Mutual TLS with certificates derived from the secret; set whenever there is one.
  bool tls = false;
  // The origin of the secret, for messages: "FLEET_JOB_SECRET", "--secret_file FILE".
  std::string origin;

  bool open() const { return secret.empty(); }
};

inline constexpr size_t kMinSecret = 16;

// To text, for a file that only this user can read, and back. Throws kUsage on other text.
std::string to_text(const Security& security);
Security security_from_text(std::string_view text);

// A new secret: 64 hexadecimal digits from the kernel's random numbers.
std::string new_secret();

inline constexpr char kEnvJobSecret[] = "FLEET_JOB_SECRET";

// --- The secret that the nodes of a job share ---

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
// with instructions, if none is found.
struct FoundSecret {
  Security security;
  bool made = false;  // created just now: nodes that do not share this home have another
};
FoundSecret find_secret(const std::string& file, bool make);

// --- Files that other users must not read or replace: secrets, private keys ---

// The text of a file. Throws kUsage if other users may read or replace it, kNotFound if there is no
// such file, and kIo.
std::string read_private_file(const std::string& path);

// The content of `fd`, but not much more than 64 KiB. `path`: for errors. Throws kIo.
std::string read_small(int fd, const std::string& path);

}  // namespace fleet
