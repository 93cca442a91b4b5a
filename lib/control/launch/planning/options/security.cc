#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup security_options() {
  OptionGroup group("security");
  group.text(
      {.key = "secret_file",
       .environment = {"FLEET_SECRET_FILE"},
       .value = "FILE",
       .optional = true},
      "",
      "file with the secret of a multi-node job (default: FLEET_JOB_SECRET, then your own file)");
  group.flag({.key = "insecure", .environment = {"FLEET_INSECURE"}},
             "use neither a secret nor TLS; only on a network that you trust");
  return group;
}

}  // namespace fleet
