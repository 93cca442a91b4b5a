#include "rendezvous/security.h"

#include <sys/random.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr std::string_view kTls = "tls ", kOpen = "open";

}  // namespace

std::string to_text(const Security& security) {
  if (security.open()) return std::string(kOpen);
  return std::string(kTls) + security.secret;
}

Security security_from_text(std::string_view text) {
  if (text == kOpen) return {};
  if (text.starts_with(kTls) && text.size() >= kTls.size() + kMinSecret) {
    return {std::string(text.substr(kTls.size())), true, {}};
  }
  throw Error(ErrorCode::kUsage, "not the credentials of a job");
}

std::string new_secret() {
  char bytes[32];
  // Up to 256 bytes arrive completely or not at all.
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw_errno("no random numbers");
  return hex({bytes, sizeof bytes});
}

}  // namespace fleet
