#include "launch/planning/options.h"

namespace fleet {

OptionGroup check_options() {
  OptionGroup group("checks before the start");
  group.flag(paddle({.key = "allow_skew"}),
             "only warn if nodes differ in versions, files, libraries or NCCL_* settings");
  group.flag(paddle({.key = "preflight"}),
             "run the checks of `fleetrun doctor` before ranks start; exit with 117 if one fails");
  group.integer({.key = "debug_rank", .value = "R", .optional = true}, -1, -1, 1 << 30,
                "hold this rank until `fleetrun debug --rank R` starts it in your terminal");
  return group;
}

OptionGroup security_options() {
  OptionGroup group("security");
  group.text({.key = "secret_file",
              .environment = {"FLEET_SECRET_FILE"},
              .value = "FILE",
              .optional = true},
             "",
             "file with the secret of a multi-node job (default: FLEET_JOB_SECRET, then "
             "~/.config/fleetrun/secret)");
  group.flag({.key = "insecure", .environment = {"FLEET_INSECURE"}},
             "use neither a secret nor TLS; only on a network that you trust");
  return group;
}

OptionGroup inspect_option_group() {
  OptionGroup group("inspection without a start");
  group.flag({.key = "print_config"}, "print every value and its origin, then exit");
  group.flag({.key = "dry_run"}, "check everything, show what would start, then exit");
  group.choice({.key = "format", .value = "FORMAT", .optional = true}, "table",
               {"table", "json", "shell"}, "format of --dry_run (shell: one rank, for eval)");
  group.integer({.key = "rank_env", .value = "R", .optional = true}, -1, 0, 1 << 30,
                "limit --dry_run to this rank");
  group.choice({.key = "print_completion", .value = "SHELL", .optional = true}, "bash",
               {"bash", "fish", "zsh"}, "print completion code for a shell, for eval or source");
  group.flag({.key = "version", .aliases = {"V"}}, "print the version");
  group.flag({.key = "help", .aliases = {"h"}},
             "print help; --help all: every option; --help COMMAND");
  return group;
}

}  // namespace fleet
