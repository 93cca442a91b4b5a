#include "launch/planning/launch_config.h"

#include <signal.h>

#include <algorithm>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/arguments.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/translate.h"

namespace fleet {

std::string read_listen_address(const Settings& settings, const std::string& key, int usual_port,
                                int least_port, int* port) {
  const std::string text = settings.text(key), where = settings.origin(key);
  HostPort parts = split_endpoint(text);
  if (!parts.port && parse_port(parts.host, least_port, port)) {
    parts = {"127.0.0.1", parts.host};  // a port alone
  }
  if (!parts.port || !parse_port(*parts.port, least_port, port)) {
    refuse("'" + text + "' is not an address with a port", where,
           "write it like --" + key + "=127.0.0.1:" + std::to_string(usual_port));
  }
  const std::string address = resolve(parts.host);
  if (address.empty()) {
    refuse("'" + parts.host + "' cannot be resolved", where, "give an address of this host");
  }
  return address;
}

MetricsConfig read_metrics_config(const Settings& settings) {
  MetricsConfig config;
  if (!settings.given("metrics")) return config;
  const std::string text = settings.text("metrics"), where = settings.origin("metrics");
  config.address = read_listen_address(settings, "metrics", 9400, 1, &config.port);
  config.token_file = settings.text("metrics_token_file");
  if (config.token_file.empty() && !is_loopback(config.address)) {
    refuse("other machines could read " + text + ", and no token protects it", where,
           "add --metrics_token_file=FILE, or listen at 127.0.0.1");
  }
  return config;
}

namespace {

// The number of a signal name; 0 if unknown.
int signal_number(const std::string& name) {
  for (int number = 1; number < SIGRTMIN; ++number) {
    if (signal_name(number) == name) return number;
  }
  return 0;
}

std::chrono::milliseconds read_seconds(const Settings& settings, const char* key) {
  return std::chrono::milliseconds(static_cast<int64_t>(settings.number(key) * 1000));
}

std::optional<std::string> read_optional(const Settings& settings, const char* key) {
  if (!settings.given(key)) return std::nullopt;
  return settings.text(key);
}

std::optional<NumaBinding> read_numa_binding(const std::string& text) {
  if (text == "node") return NumaBinding::kNode;
  if (text == "socket") return NumaBinding::kSocket;
  if (text == "exclusive") return NumaBinding::kExclusive;
  if (text == "core-complex") return NumaBinding::kCoreComplex;
  return std::nullopt;
}

ViaConfig read_via_config(const Settings& settings) {
  ViaConfig via;
  via.name = settings.text("via");
  via.options = shell_words(settings.text("via_options"), settings.origin("via_options"));
  via.remote_fleetrun = read_optional(settings, "remote_fleetrun");
  via.fleetd_port = static_cast<int>(settings.integer("fleetd_port"));
  via.fleetd_secret_file = settings.text("fleetd_secret_file");
  via.detach = settings.boolean("detach");
  via.share_gpus = settings.boolean("share_gpus");
  via.folder = read_optional(settings, "chdir");
  via.user = read_optional(settings, "user");
  return via;
}

// This node's ranks and how they are started.
void read_ranks(const Settings& settings, LaunchConfig* config) {
  config->gpus = sourced(settings, "gpus", split(settings.text("gpus"), ','));
  config->local_world_size = sourced_integer(settings, "nproc_per_node");
  config->numa_binding = read_numa_binding(settings.text("numa_binding"));
  config->virtual_local_rank = settings.boolean("virtual_local_rank");
  config->role = settings.text("role");
  config->as_torchrun = is_torchrun_mode(settings);
  config->program_kind = read_program_kind(settings);
  config->dialects = read_dialects(settings, config->roles.wanted);
  config->dialects_given = settings.given("dialect");
  config->exported = settings.texts("export");
  config->debug_rank = sourced_integer(settings, "debug_rank");
}

}  // namespace

std::vector<int> read_stop_signals(const Settings& settings) {
  const auto wrong = [&](const std::string& what) {
    refuse(what, settings.origin("signals_to_handle"), "write it like SIGTERM,SIGINT,SIGUSR1");
  };
  std::vector<int> signals;
  for (const std::string& name : split(settings.text("signals_to_handle"), ',')) {
    const int number = signal_number(name);
    if (number == 0) wrong("unknown signal '" + name + "'");
    // The launcher itself needs SIGCHLD and SIGPIPE; the fault signals cannot be blocked and waited
    // for.
    for (const int other : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGCHLD, SIGPIPE}) {
      if (number == other) wrong(name + " cannot be handled");
    }
    if (std::find(signals.begin(), signals.end(), number) == signals.end()) {
      signals.push_back(number);
    }
  }
  return signals;
}

std::vector<int> forwarded_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::erase_if(signals, [](int signal) {
    struct sigaction action;
    return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  });
  return signals;
}

std::string signal_names(const std::vector<int>& signals) {
  std::vector<std::string> names;
  for (const int signal : signals) names.push_back(signal_name(signal));
  return join(names, ",");
}

LaunchConfig read_launch_config(const Settings& settings) {
  LaunchConfig config;
  config.job_id = sourced(settings, "job_id", settings.text("job_id"));
  config.roles = read_roles(settings);
  config.nodes = read_nodes_config(settings, config.roles);
  config.rendezvous_timeout = read_seconds(settings, "rdzv_timeout");
  config.heartbeat_timeout = read_seconds(settings, "heartbeat_timeout");
  read_ranks(settings, &config);
  config.grace = read_seconds(settings, "grace");
  config.guardian.set_hang_timeout_ms(
      static_cast<int>(read_seconds(settings, "hang_timeout").count()));
  config.restarts = read_restart_policy(settings);
  config.stop_signals = read_stop_signals(settings);
  config.end_command = settings.text("on_end");
  config.logs = read_log_config(settings);
  config.metrics = read_metrics_config(settings);
  config.security = {settings.boolean("insecure"),
                     sourced(settings, "secret_file", settings.text("secret_file"))};
  config.via = read_via_config(settings);
  config.allow_skew = settings.boolean("allow_skew");
  config.preflight = settings.boolean("preflight");
  config.control_pipe = settings.boolean("control_pipe");
  config.part = settings.boolean("part");
  return config;
}

}  // namespace fleet
