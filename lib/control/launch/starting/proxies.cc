#include <boost/asio/ip/network_v4.hpp>

#include "base/text.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/starting/startup_messages.h"

namespace fleet {
namespace {

namespace ip = boost::asio::ip;

// "10.0.0.0/8"
bool is_in_network(const std::string& host, const std::string& network) {
  boost::system::error_code no_address, no_network;
  const auto address = ip::make_address_v4(host, no_address);
  const auto of = ip::make_network_v4(network, no_network);
  return !no_address && !no_network &&
         ip::network_v4(address, of.prefix_length()).canonical() == of.canonical();
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

std::vector<std::string> proxy_warnings(const std::vector<std::string>& dialects,
                                        const Assignment& assignment,
                                        const EnvironmentLookup& environment) {
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
    if (!dialect->proxied_host || assignment.world->servers() > 0) continue;
    const std::string host = dialect->proxied_host(assignment);
    if (host.empty() || excepted_from_proxy(host, excepted)) continue;
    warnings.push_back(
        proxy + " is set: " + dialect->name + " would connect to its coordinator on " + host +
        " through this proxy and may hang; add " + host + " to no_proxy, or unset the proxy");
  }
  return warnings;
}

}  // namespace fleet
