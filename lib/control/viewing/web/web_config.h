// --web: where a page is served, and what protects it.
#pragma once

#include <string>

#include "base/config.h"
#include "base/option_group.h"
#include "launch/starting/https.h"

namespace fleet {

struct WebConfig {
  std::string address;     // numeric; "": nowhere
  int port = 0;            // 0: any
  HttpsContext https;      // nullptr: plain HTTP
  std::string token;       // that of token_file, else a new one
  std::string token_file;  // "": not given

  bool wanted() const { return !address.empty(); }
  // "https://node1:9401/", as a browser asks for it.
  std::string url(int actual_port) const;
};

// --web[=127.0.0.1:PORT], and the options of its TLS and token. `implied`: the value of --web
// alone.
void add_web_options(const std::string& implied, const std::string& help, OptionGroup* options);
// kUsage for an address that is not one, for one that other machines can reach without TLS and a
// token, and for files that cannot be used.
WebConfig read_web_config(const Settings& settings);

}  // namespace fleet
