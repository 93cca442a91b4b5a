// --metrics: where this node serves the state of its ranks to Prometheus.
#pragma once

#include <string>

#include "base/config.h"

namespace fleet {

struct MetricsConfig {
  std::string address;  // numeric; "": nowhere
  int port = 0;
  std::string token_file;  // "": no token is asked for

  bool wanted() const { return !address.empty(); }
};

// kUsage for an address that is not one, and for one beyond loopback without a token.
MetricsConfig read_metrics_config(const Settings& settings);

}  // namespace fleet
