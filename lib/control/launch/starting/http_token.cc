
#include <strings.h>

#include <cstdint>
#include <string>

#include "launch/starting/http_server.h"

namespace fleet {
namespace {

// Up to the first character that is not of the alphabet: "=" at the end, too.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

// Upper and lower case are the same in names of schemes (RFC 9110, 11.1).
bool has_scheme(std::string_view authorization, std::string_view scheme) {
  return authorization.size() >= scheme.size() &&
         ::strncasecmp(authorization.data(), scheme.data(), scheme.size()) == 0;
}

}  // namespace

bool has_token(const HttpRequest& request, std::string_view token) {
  constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";
  const std::string_view given = request.authorization;
  if (has_scheme(given, kBearer)) return equal_secrets(given.substr(kBearer.size()), token);
  if (!has_scheme(given, kBasic)) return false;
  const std::string login = from_base64(given.substr(kBasic.size()));  // "NAME:PASSWORD"
  const size_t colon = login.find(':');
  return colon != std::string::npos && equal_secrets(login.substr(colon + 1), token);
}

}  // namespace fleet
