#include "launch/options/group.h"

namespace fleet {

OptionGroup role_options() {
  OptionGroup group("parameter servers");
  group.text({.key = "run_mode", .environment = {"PADDLE_RUN_MODE"}, .value = "MODE"}, "collective",
             "collective, or ps: parameter servers");
  group.texts({.key = "servers",
               .environment = {"PADDLE_SERVERS_ENDPOINTS"},
               .value = "LIST",
               .optional = true,
               .common = true},
              "parameter servers, host:port each, on all nodes");
  group.texts({.key = "workers",
               .aliases = {"trainers"},
               .environment = {"PADDLE_TRAINERS_ENDPOINTS"},
               .value = "LIST",
               .optional = true,
               .common = true},
              "their trainers, host or host:port each");
  group.integer({.key = "server_num",
                 .environment = {"PADDLE_SERVER_NUM"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 0, 4096, "parameter servers on each node, where not listed");
  group.integer({.key = "worker_num",
                 .aliases = {"trainer_num"},
                 .environment = {"PADDLE_TRAINER_NUM"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 0, 4096, "their trainers on each node, where not listed");
  group.choice({.key = "with_gloo", .environment = {"PADDLE_WITH_GLOO"}, .value = "0|1|2"}, "1",
               {"0", "1", "2"}, "whether roles may meet through Gloo");
  group.integer({.key = "gloo_port",
                 .aliases = {"http_port"},
                 .environment = {"PADDLE_GLOO_PORT"},
                 .value = "PORT",
                 .optional = true},
                0, 0, 65535, "where, on the first node (default: as endpoints)");
  return group;
}

}  // namespace fleet
