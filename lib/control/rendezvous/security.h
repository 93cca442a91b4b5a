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

}  // namespace fleet
