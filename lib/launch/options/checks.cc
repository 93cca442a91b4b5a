#include "launch/options/group.h"

namespace fleet {

OptionGroup check_options() {
  OptionGroup group("before it starts");
  group.flag({.key = "allow_skew", .environment = {"PADDLE_ALLOW_SKEW"}},
             "nodes may have other versions, files, libraries or NCCL_* settings: only warned of");
  return group;
}

}  // namespace fleet
