// Certificates derived from a secret, and a probe of the server at an address. The only place that
// uses OpenSSL directly.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "transport/security.h"

namespace fleet {

// HMAC-SHA256, 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view message);
// HKDF-SHA256 (RFC 5869), 32 bytes.
std::string derive_key(std::string_view secret, std::string_view salt, std::string_view info);

// All holders of the secret derive the same authority (an Ed25519 key). Each process issues itself
// a certificate for a new P-256 key that never leaves the process.
struct Certificates {
  std::string authority;  // PEM
  std::string chain;      // PEM
  std::string key;        // PEM
};
// The subject name of every certificate.
inline constexpr char kCertificateName[] = "fleetrun";
// Certificates are valid from one day ago, because clocks differ, and for this long.
inline constexpr std::chrono::hours kCertificateLife{30 * 24};
// Takes about 0.3 ms. Throws kInternal if OpenSSL fails. All functions here are thread-safe.
Certificates issue_certificates(const std::string& secret);

// Identifies a secret without revealing it: eight hexadecimal digits of the authority's key.
std::string secret_id(const std::string& secret);

// The server that answers a TLS greeting at "host:port" or "[::1]:port".
struct Listener {
  enum class Kind { kNothing, kPlain, kTls } kind = Kind::kNothing;
  std::string secret_id;  // kTls: the secret_id of its certificate; "" if it is not one of ours
  bool valid_now = true;  // kTls: by this host's clock
};
// Takes at most about `timeout`.
Listener probe_listener(const std::string& address, std::chrono::milliseconds timeout);

// Finds why a reachable rendezvous does not accept us: another secret, TLS on one side only, clocks
// apart. Returns kUsage with instructions, or nullopt if all of that matches. Takes up to 1 s.
std::optional<Error> find_security_mismatch(const std::string& address, const Security& ours);

}  // namespace fleet
