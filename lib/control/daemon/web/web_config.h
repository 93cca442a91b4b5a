// --web: where a page is served.
#pragma once

#include <string>

#include "base/config.h"
#include "base/option_group.h"

namespace fleet {

struct WebConfig {
  std::string address;  // numeric; "": nowhere
  int port = 0;         // 0: any

  bool wanted() const { return !address.empty(); }
};

// --web[=127.0.0.1:PORT]. `implied`: the value of --web alone.
void add_web_option(const std::string& implied, const std::string& help, OptionGroup* options);
// kUsage for an address that is not one, and for one that other machines can reach.
WebConfig read_web_config(const Settings& settings);

}  // namespace fleet
