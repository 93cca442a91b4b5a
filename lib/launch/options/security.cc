#include "launch/options/group.h"

namespace fleet {

OptionGroup security_options() {
  OptionGroup group("security");
  group.text({.key = "secret_file",
              .environment = {"FLEET_SECRET_FILE"},
              .value = "FILE",
              .optional = true},
             "", "the secret of several nodes (default: FLEET_JOB_SECRET, your own file)");
  group.flag({.key = "insecure", .environment = {"FLEET_INSECURE"}},
             "no secret and no TLS, on a network that you trust");
  return group;
}

}  // namespace fleet
