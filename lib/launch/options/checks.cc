#include "launch/options/group.h"

namespace fleet {

OptionGroup check_options() {
  OptionGroup group("before it starts");
  return group;
}

}  // namespace fleet
