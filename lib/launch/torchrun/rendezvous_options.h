// torchrun's options of the rendezvous: --rdzv_*, --master_addr, --master_port, --standalone.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/compat/line.h"

namespace fleet {

// Sets `master` for several nodes, `master_port` for one, and what --rdzv_conf says; adds to `idle`
// what has no meaning here. kUsage for what makes no sense.
void translate_rendezvous(ConfigTree* tree, std::vector<IdleFlag>* idle);

}  // namespace fleet
