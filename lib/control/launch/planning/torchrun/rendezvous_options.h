// torchrun's rendezvous options: --rdzv_*, --master_addr, --master_port, --standalone.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/compat/line.h"

namespace fleet {

// Sets `master` for several nodes, `master_port` for one, and the settings of --rdzv_conf. Adds
// options without effect to `ignored`. Throws kUsage for invalid values.
void translate_rendezvous(ConfigTree* tree, std::vector<IgnoredFlag>* ignored);

}  // namespace fleet
