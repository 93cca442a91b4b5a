#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup check_options() {
  OptionGroup group("checks before the start");
  group.flag({.key = "allow_skew", .environment = {"PADDLE_ALLOW_SKEW"}},
             "only warn if nodes differ in versions, files, libraries or NCCL_* settings");
  group.flag({.key = "preflight", .environment = {"PADDLE_PREFLIGHT"}},
             "run the checks of `fleetrun doctor` before ranks start; exit with 117 if one fails");
  group.integer({.key = "debug_rank", .value = "R", .optional = true}, -1, -1, 1 << 30,
                "hold this rank until `fleetrun debug --rank R` starts it in your terminal");
  return group;
}

}  // namespace fleet
