#include "launch/options/group.h"

namespace fleet {

OptionGroup look_options() {
  OptionGroup group("looking, not starting");
  group.flag({.key = "print_config"}, "print every value and where it came from, then end");
  group.flag({.key = "dry_run"}, "check everything, show what would be started, then end");
  group.choice({.key = "format", .value = "FORMAT", .optional = true}, "table",
               {"table", "json", "shell"}, "how (table, json, shell: one rank's, for eval)");
  group.integer({.key = "rank_env", .value = "R", .optional = true}, -1, 0, 1 << 30,
                "and only this rank");
  group.choice({.key = "print_completion", .value = "SHELL", .optional = true}, "bash",
               {"bash", "zsh"}, "completion for bash or zsh, for eval");
  group.flag({.key = "version", .aliases = {"V"}}, "print it");
  group.flag({.key = "help", .aliases = {"h"}}, "this; --help all: every option; --help COMMAND");
  return group;
}

}  // namespace fleet
