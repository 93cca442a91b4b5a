#include "launch/options/group.h"

namespace fleet {

OptionGroup security_options() {
  OptionGroup group("security");
  return group;
}

}  // namespace fleet
