#include "launch/starting/proxies.h"

#include <arpa/inet.h>

#include <cstdint>

#include "base/text.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

bool address_of(const std::string& text, uint32_t* address) {
  in_addr parsed;
  if (::inet_pton(AF_INET, text.c_str(), &parsed) != 1) return false;
  *address = ntohl(parsed.s_addr);
  return true;
}

// "10.0.0.0/8"
bool is_in_network(const std::string& host, const std::string& network) {
  const size_t slash = network.find('/');
  uint32_t address = 0, base = 0;
  long long bits = 0;
  if (slash == std::string::npos || !address_of(host, &address) ||
      !address_of(network.substr(0, slash), &base) ||
      !parse_int(network.substr(slash + 1), &bits) || bits < 0 || bits > 32) {
    return false;
  }
  const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
  return (address & mask) == (base & mask);
}

}  // namespace

bool excepted_from_proxy(const std::string& host, const std::string& no_proxy) {
  for (std::string entry : split(no_proxy, ',')) {
    if (entry == "*") return true;
    if (is_in_network(host, entry)) return true;
    entry.erase(0, entry.find_first_not_of("*."));
    if (entry.empty()) continue;
    if (host == entry || host.ends_with("." + entry)) return true;
  }
  return false;
}

std::vector<std::string> proxy_warnings(
    const std::vector<std::string>& dialects, const Assignment& assignment,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  std::vector<std::string> warnings;
  // As in gRPC, the first variable that is set wins.
  std::string proxy, excepted;
  for (const char* name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    if (proxy.empty() && environment(name)) proxy = name;
  }
  for (const char* name : {"no_grpc_proxy", "no_proxy"}) {
    if (excepted.empty()) excepted = environment(name).value_or("");
  }
  if (proxy.empty()) return warnings;
  for (const Dialect* dialect : dialects_named(dialects)) {
    if (!dialect->proxied_host || assignment.world->servers > 0) continue;
    const std::string host = dialect->proxied_host(assignment);
    if (host.empty() || excepted_from_proxy(host, excepted)) continue;
    warnings.push_back(
        proxy + " is set: " + dialect->name + " would connect to its coordinator on " + host +
        " through this proxy and may hang; add " + host + " to no_proxy, or unset the proxy");
  }
  return warnings;
}

}  // namespace fleet
