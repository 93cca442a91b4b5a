// The options of fleet-worker. fleet-worker reads them; fleetrun recognizes those that come before
// the job file, and `fleetrun pack` takes those of packing.
#pragma once

#include "base/option_group.h"

namespace fleet {

OptionGroup worker_options();
// --size, --raw, ...: those of packing, which worker_options() contains.
OptionGroup pack_options();

}  // namespace fleet
