#include "launch/planning/metrics_config.h"

#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"

namespace fleet {

MetricsConfig read_metrics_config(const Settings& settings) {
  MetricsConfig config;
  if (!settings.given("metrics")) return config;
  const std::string text = settings.text("metrics"), where = settings.origin("metrics");
  HostPort parts = split_endpoint(text);
  if (!parts.port && parse_port(parts.host, 1, &config.port)) {
    parts = {"127.0.0.1", parts.host};  // a port alone
  }
  if (!parts.port || !parse_port(*parts.port, 1, &config.port)) {
    refuse("'" + text + "' is not an address with a port", where,
           "write it like --metrics=127.0.0.1:9400");
  }
  config.address = resolve(parts.host);
  if (config.address.empty()) {
    refuse("'" + parts.host + "' cannot be resolved", where, "give an address of this host");
  }
  config.token_file = settings.text("metrics_token_file");
  if (config.token_file.empty() && !is_loopback(config.address)) {
    refuse("other machines could read " + text + ", and no token protects it", where,
           "add --metrics_token_file=FILE, or listen at 127.0.0.1");
  }
  return config;
}

}  // namespace fleet
