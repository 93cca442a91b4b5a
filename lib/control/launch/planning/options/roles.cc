#include "launch/planning/options.h"

namespace fleet {

OptionGroup role_options() {
  OptionGroup group("parameter servers");
  group.text(paddle({.key = "run_mode", .value = "MODE"}), "collective",
             "kind of job: collective, or ps (parameter servers)");
  group.texts({.key = "servers",
               .environment = {"PADDLE_SERVERS_ENDPOINTS"},
               .value = "LIST",
               .optional = true,
               .common = true},
              "all parameter servers, as host:port,host:port");
  group.texts({.key = "workers",
               .aliases = {"trainers"},
               .environment = {"PADDLE_TRAINERS_ENDPOINTS"},
               .value = "LIST",
               .optional = true,
               .common = true},
              "all trainers, as host or host:port");
  group.integer(paddle({.key = "server_num", .value = "N", .optional = true, .common = true}), 0, 0,
                4096, "parameter servers per node, if --servers is not given");
  group.integer({.key = "worker_num",
                 .aliases = {"trainer_num"},
                 .environment = {"PADDLE_TRAINER_NUM"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 0, 4096, "trainers per node, if --workers is not given");
  group.choice({.key = "replace_trainers", .value = "WHEN", .optional = true}, "auto",
               {"auto", "always", "never"},
               "start a trainer that fails again in its place (auto: a job file in the modes async "
               "and geo) (default: auto)");
  group.choice(paddle({.key = "with_gloo", .value = "0|1|2"}), "1", {"0", "1", "2"},
               "Gloo mode that servers and trainers get as PADDLE_WITH_GLOO");
  group.integer(
      paddle({.key = "gloo_port", .aliases = {"http_port"}, .value = "PORT", .optional = true}), 0,
      0, 65535, "Gloo rendezvous port on the first node (default: chosen like an endpoint port)");
  return group;
}

}  // namespace fleet
