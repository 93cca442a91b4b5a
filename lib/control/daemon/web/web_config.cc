#include "daemon/web/web_config.h"

#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"

namespace fleet {

void add_web_option(const std::string& implied, const std::string& help, OptionGroup* options) {
  options->text({.key = "web", .value = "127.0.0.1:PORT", .optional = true, .implied = implied}, "",
                help);
}

WebConfig read_web_config(const Settings& settings) {
  WebConfig config;
  if (!settings.given("web")) return config;
  const std::string text = settings.text("web"), where = settings.origin("web");
  HostPort parts = split_endpoint(text);
  if (!parts.port && parse_port(parts.host, 0, &config.port)) {
    parts = {"127.0.0.1", parts.host};  // a port alone
  }
  if (!parts.port || !parse_port(*parts.port, 0, &config.port)) {
    refuse("'" + text + "' is not an address with a port", where,
           "write it like --web=127.0.0.1:9401");
  }
  config.address = resolve(parts.host);
  if (config.address.empty()) {
    refuse("'" + parts.host + "' cannot be resolved", where, "use 127.0.0.1");
  }
  if (!is_loopback(config.address)) {
    const std::string port = config.port > 0 ? *parts.port : "9401";
    refuse("other machines could read " + text, where,
           "listen at 127.0.0.1:" + port + ", and from elsewhere use ssh -L " + port +
               ":127.0.0.1:" + port + " " + host_name());
  }
  return config;
}

}  // namespace fleet
