// Certificates that follow from a secret, and a look at who serves an address. The one place that
// uses OpenSSL itself.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fleet {

// HKDF-SHA256 (RFC 5869), 32 bytes.
std::string derive_key(std::string_view secret, std::string_view salt, std::string_view info);

// Everyone with the secret has the same authority (an Ed25519 key derived from the secret) and
// issues a certificate to itself, for a new P-256 key that stays in the process.
struct Certificates {
  std::string authority;  // PEM
  std::string chain;      // PEM
  std::string key;        // PEM
};
// The name every certificate is for.
inline constexpr char kCertificateName[] = "fleetrun";
// Valid from a day ago, since clocks differ, and for so long.
inline constexpr std::chrono::hours kCertificateLife{30 * 24};
// Takes about 0.3 ms. kInternal where OpenSSL fails. Thread-safe, as all here.
Certificates issue_certificates(const std::string& secret);

// Tells secrets apart without giving them away: eight hexadecimal digits of the authority's key.
std::string secret_id(const std::string& secret);

// What answers a TLS greeting at "host:port" or "[::1]:port".
struct Listener {
  enum class Kind { kNothing, kPlain, kTls } kind = Kind::kNothing;
  std::string secret_id;  // kTls: whose certificate it shows; "" where it is none of ours
  bool valid_now = true;  // kTls: by this host's clock
};
// Takes at most about `patience`.
Listener look_at(const std::string& address, std::chrono::milliseconds patience);

}  // namespace fleet
