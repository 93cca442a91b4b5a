#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup inspect_option_group() {
  OptionGroup group("inspection without a start");
  group.flag({.key = "print_config"}, "print every value and its origin, then exit");
  group.flag({.key = "dry_run"}, "check everything, show what would start, then exit");
  group.choice({.key = "format", .value = "FORMAT", .optional = true}, "table",
               {"table", "json", "shell"}, "format of --dry_run (shell: one rank's, for eval)");
  group.integer({.key = "rank_env", .value = "R", .optional = true}, -1, 0, 1 << 30,
                "limit --dry_run to this rank");
  group.choice({.key = "print_completion", .value = "SHELL", .optional = true}, "bash",
               {"bash", "zsh"}, "print completion code for bash or zsh, for eval");
  group.flag({.key = "version", .aliases = {"V"}}, "print the version");
  group.flag({.key = "help", .aliases = {"h"}},
             "print help; --help all: every option; --help COMMAND");
  return group;
}

}  // namespace fleet
