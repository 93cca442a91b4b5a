#include "launch/options/group.h"

namespace fleet {

OptionGroup check_options() {
  OptionGroup group("before it starts");
  group.flag({.key = "allow_skew", .environment = {"PADDLE_ALLOW_SKEW"}},
             "nodes may have other versions, files, libraries or NCCL_* settings: only warned of");
  group.flag({.key = "preflight", .environment = {"PADDLE_PREFLIGHT"}},
             "the checks of `fleetrun doctor` before the ranks start; 117 where one fails");
  group.integer({.key = "debug_rank", .value = "R", .optional = true}, -1, -1, 1 << 30,
                "this rank waits until `fleetrun debug --rank R` starts it in your terminal");
  return group;
}

}  // namespace fleet
