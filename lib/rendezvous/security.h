// How the control plane tells friend from stranger (docs/explanation/security.md): decided once by
// the launcher or daemon, then given to every server and channel. No gRPC and no OpenSSL here.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// Default: open to everyone who reaches the port (--insecure, and tests).
struct Security {
  // What friends have in common: any text of at least kMinSecret characters; "" where open.
  std::string secret;
  // Mutual TLS with certificates that follow from the secret: wherever there is one.
  bool tls = false;
  // Where the secret comes from, for messages: "FLEET_JOB_SECRET", "--secret_file FILE".
  std::string origin;

  bool open() const { return secret.empty(); }
};

inline constexpr size_t kMinSecret = 16;

// As text, for a file that only this user can read, and back. kUsage where it is none.
std::string to_text(const Security& security);
Security security_from_text(std::string_view text);

// A new secret: 64 hexadecimal digits from the kernel's random numbers.
std::string new_secret();

}  // namespace fleet
